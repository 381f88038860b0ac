#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/tables/table.h"
#include "watch/picture.h"

namespace lockbench::cli {

/// Of a terminal, in characters.
struct ScreenSize {
  std::size_t columns = 80, lines = 24;
};

/// One line of a screen: no wider than it, without control characters.
struct ScreenLine {
  std::string text;
  results::Tone tone = results::Tone::plain;
  bool selected = false, heading = false;
};

/// What a key means, whatever the terminal sends for it.
enum class Key { up, down, open, back, order, quit };
/// The keys in what a terminal sent; others are left out.
std::vector<Key> read_keys(std::string_view bytes);

/// A picture as a screen, and what the user looks at. Not thread-safe.
class WatchView {
 public:
  /// `ascii`: for a terminal without UTF-8.
  explicit WatchView(bool ascii) : ascii_(ascii) {}

  /// False: the user wants to leave.
  bool press(Key key, const watch::Picture& picture);
  /// At most `size.lines` lines.
  std::vector<ScreenLine> lines(const watch::Picture& picture, ScreenSize size) const;

 private:
  struct Name {
    std::string endpoint, lock;
    bool operator==(const Name&) const = default;
  };

  std::vector<const watch::LockPicture*> locks_in_order(const watch::Picture& picture) const;
  std::vector<const watch::FamilyPicture*> families_in_order(const watch::Picture& picture) const;
  std::size_t place_of_selected(const std::vector<const watch::LockPicture*>& locks) const;

  std::vector<ScreenLine> overview(const watch::Picture& picture, ScreenSize size) const;
  std::vector<ScreenLine> one_lock(const watch::Picture& picture, ScreenSize size) const;
  void add_head(const watch::Picture& picture, std::size_t width,
                std::vector<ScreenLine>& lines) const;
  void add_findings(const watch::Picture& picture, std::size_t width, std::size_t room,
                    std::vector<ScreenLine>& lines) const;
  void add_families(const watch::Picture& picture, std::size_t width, std::size_t room,
                    std::vector<ScreenLine>& lines) const;
  void add_locks(const watch::Picture& picture, std::size_t width, std::size_t room,
                 std::vector<ScreenLine>& lines) const;
  ScreenLine line(std::string_view text, std::size_t width,
                  results::Tone tone = results::Tone::plain) const;

  const bool ascii_;
  std::size_t order_ = 0;         ///< of those in which it can show families and locks
  std::optional<Name> selected_;  ///< nothing: the first lock
  bool opened_ = false;           ///< shows the selected lock alone
};

}  // namespace lockbench::cli
