#include "loadgen/run/contention_notes.h"

#include "loadgen/run/worker.h"

namespace lockbench::loadgen {

void ContentionNotes::waits(Lock lock, TimePoint started, Phase phase) {
  if (run_.log) return log(lock, {.at = started, .kind = LockEvent::Kind::waits}, phase);
  wait_ = run_.handoff.begin_wait(lock.key, lock.mode);
}

void ContentionNotes::waited(Lock lock, TimePoint intended, TimePoint ended, Outcome outcome,
                             Counts& counts) {
  if (run_.log) {
    const auto kind = outcome.granted ? LockEvent::Kind::granted : LockEvent::Kind::gave_up;
    return log(lock,
               {.at = ended, .span = ended - intended, .kind = kind, .flag = outcome.found_taken},
               outcome.phase);
  }
  auto& histograms = run_.recorder.histograms(outcome.phase);
  handoffs_.clear();
  if (!outcome.granted) {
    if (outcome.found_taken) run_.handoff.found_taken(lock.key, wait_);
    std::vector<Duration> unserved;
    run_.handoff.gave_up(lock.key, wait_, ended, unserved);
    for (const Duration waited : unserved) histograms[Timing::handoff_cut].record(waited);
    return;
  }
  const GrantNote note = run_.handoff.granted(lock.key, wait_, ended, handoffs_);
  counts[Count::contended_grants] += note.contended ? 1 : 0;
  if (!note.contended) histograms[Timing::uncontended].record(ended - intended);
  counts[Count::overtakings] += note.overtook ? 1 : 0;
  if (note.turnaround) histograms[Timing::turnaround].record(*note.turnaround);
  record_handoffs(outcome.phase, counts);
}

void ContentionNotes::releases(Lock lock, TimePoint section_over, TimePoint begun, Phase phase) {
  if (run_.log) {
    return log(lock, {.at = begun, .span = begun - section_over, .kind = LockEvent::Kind::releases},
               phase);
  }
  awaited_ = run_.handoff.release_started(lock.key, lock.mode, begun);
}

void ContentionNotes::released(Lock lock, TimePoint begun, TimePoint done, bool success,
                               Phase phase, Counts& counts) {
  if (run_.log) {
    return log(
        lock,
        {.at = done, .span = done - begun, .kind = LockEvent::Kind::released, .flag = success},
        phase);
  }
  if (!awaited_) return;
  handoffs_.clear();
  run_.handoff.release_finished(lock.key, begun, success, handoffs_);
  counts[Count::awaited_releases] += success ? 1 : 0;
  record_handoffs(phase, counts);
}

void ContentionNotes::log(Lock lock, LockEvent event, Phase phase) {
  event.key = lock.key;
  event.mode = lock.mode;
  event.client = client_;
  event.phase = static_cast<std::uint8_t>(phase);
  run_.log->add(event);
}

void ContentionNotes::record_handoffs(Phase phase, Counts& counts) {
  for (const Handoff& handoff : handoffs_) {
    for (std::uint64_t i = 0; i < handoff.releases; ++i) {
      run_.recorder.histograms(phase)[Timing::handoff].record(handoff.taken);
    }
    counts[Count::direct_handoffs] += handoff.direct ? handoff.releases : 0;
  }
}

}  // namespace lockbench::loadgen
