#include <algorithm>

#include "loadgen/run/live_run.h"

// The load from its start to its end, as the runner's thread sees it.
namespace lockbench::loadgen {
namespace {

constexpr Duration kSeriesInterval = std::chrono::seconds(1);

std::uint64_t in_vain(const Recorder& recorder) {
  std::uint64_t count = 0;
  for (const Phase phase : kPhases) {
    count += recorder.outcome_count(phase, AcquireOutcome::refused) +
             recorder.outcome_count(phase, AcquireOutcome::timed_out);
  }
  return count;
}

}  // namespace

bool LiveRun::iterations_used_up() const {
  // Whoever ended the last one leaves then, and says so.
  return plan_.workload.iterations && run_.ended_sections.load() >= *plan_.workload.iterations;
}

TimePoint LiveRun::sample_after(TimePoint sampled_at) const {
  const TimePoint next = sampled_at + kSeriesInterval;
  // The warm-up gets points of its own.
  const bool crosses = sampled_at < run_.measure_start && next > run_.measure_start;
  return crosses ? run_.measure_start : next;
}

TimePoint LiveRun::drive(SeriesSampler& sampler, std::vector<results::SeriesPoint>& series) {
  const Workload& workload = plan_.workload;
  run_.load_start = env_->now();
  run_.measure_start = run_.load_start + workload.warmup;
  run_.load_end = run_.measure_start + workload.duration;
  run_.started.store(true, std::memory_order_release);
  if (workload.rate) {
    run_.schedule =
        std::make_unique<Schedule>(*workload.rate, workload.arrival, run_.load_start, run_.seed);
  }
  open_gate();
  if (faults_) faults_->start();

  TimePoint next_sample = sample_after(run_.load_start);
  TimePoint now = run_.load_start;
  bool over = false, used_up = false;
  while (!over) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, external_, std::min(next_sample, run_.load_end),
                          [this] { return iterations_used_up(); });
      now = env_->now();
      used_up = iterations_used_up();
      over = now >= run_.load_end || external_.stop_requested() || used_up;
    }
    if (over || now >= next_sample) {
      series.push_back(sampler.sample(now));
      progress_.sections += series.back().sections;
      progress_.sections_per_second = static_cast<double>(series.back().sections);
      progress_.failed += series.back().failed;
      progress_.in_vain = in_vain(run_.recorder);
      if (next_sample == run_.measure_start) run_.audit.restart_streaks();
      next_sample = sample_after(next_sample);
    }
    if (over) {
      // Those who wait or hold were to be seen in the last point; meanwhile they worked on.
      if (!used_up) now = env_->now();
      run_.over.request_stop();
    }
    report_load(now, over);
  }
  return now;
}

void LiveRun::report_load(TimePoint now, bool over) {
  if (now < run_.measure_start) {
    const Duration warm = now - run_.load_start;
    report(Progress::Phase::warming_up, seconds(warm) / seconds(plan_.workload.warmup));
    return;
  }
  // By time or by sections, whichever will end the run first.
  double done = seconds(now - run_.measure_start) / seconds(plan_.workload.duration);
  if (plan_.workload.iterations) {
    done = std::max(done, static_cast<double>(run_.measured_sections.load()) /
                              static_cast<double>(*plan_.workload.iterations));
  }
  report(over ? Progress::Phase::draining : Progress::Phase::measuring, std::min(done, 1.0));
}

void LiveRun::count_never_begun(TimePoint until) {
  if (!run_.schedule) return;
  // Nobody was to begin more than the number asked for.
  if (plan_.workload.iterations && run_.measured_sections >= *plan_.workload.iterations) return;
  // Due, but no client was free to begin them: they are still waiting, and were so from the start.
  // The schedule never stands still, so this ends.
  Recorder::Histograms& histograms = run_.recorder.histograms(Phase::measured);
  for (TimePoint intended = run_.schedule->next(); intended < until;
       intended = run_.schedule->next()) {
    histograms.acquire_with(AcquireOutcome::abandoned).record(until - intended);
    histograms.schedule_lag.record(until - intended);
    Counts waited;
    waited.longest_wait = until - intended;
    run_.recorder.client(0).add(Phase::measured, waited);
  }
}

void LiveRun::report(Progress::Phase phase, double done) {
  progress_.phase = phase;
  progress_.done = done;
  {
    const std::scoped_lock lock(mutex_);
    progress_.clients_connected = connected_;
  }
  observer_.on_progress(progress_);
}

}  // namespace lockbench::loadgen
