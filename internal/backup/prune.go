package backup

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Newest returns the newest backup that is not dated in the future, and all that are dated in the
// future. Backups made while the clock was wrong, or files from someone else, must not hide others.
func Newest(backups []Summary) (newest Summary, found bool, future []Summary) {
	for _, s := range backups {
		if s.isFuture() {
			future = append(future, s)
		} else if newest.Created.Before(s.Created) {
			newest, found = s, true
		}
	}
	return newest, found, future
}

func (s Summary) isFuture() bool { return s.Created.After(time.Now().Add(slack)) }

// slack is how far the clock of the file system or of another machine may be ahead of the clock of
// this machine.
const slack = time.Hour

// Prune removes old backups, and the media that only they used. The parameter keep is the number of
// backups that remain: the newest ones, always including the one named made, which has just been
// created. If keep is 0 or less, nothing is removed. Other backups dated in the future are neither
// counted nor removed. Prune returns the names of the removed backups.
func (d Dir) Prune(keep int, made string) (removed []string, err error) {
	backups, err := d.List()
	if err != nil {
		return nil, err
	}
	if keep <= 0 {
		return nil, nil
	}

	backups = slices.DeleteFunc(backups, func(s Summary) bool { return s.Name != made && s.isFuture() })
	if len(backups) <= keep {
		return nil, nil
	}

	// The backup named made comes first, even if the clock was set back and others are newer.
	slices.SortStableFunc(backups, func(a, b Summary) int {
		switch made {
		case a.Name:
			return -1
		case b.Name:
			return 1
		}
		return 0
	})
	for _, s := range backups[keep:] {
		if err := errors.Join(d.files.Remove(s.Name), d.files.Remove(s.Name+summarySuffix)); err != nil {
			return removed, err
		}
		removed = append(removed, s.Name)
	}
	return removed, d.pruneMedia(backups[:keep])
}

// pruneMedia removes the media that none of the remaining backups uses. Each backup marks the media
// that it uses, so media whose last use is older than the oldest backup is no longer needed.
func (d Dir) pruneMedia(remaining []Summary) error {
	oldest := slices.MinFunc(remaining, func(a, b Summary) int { return a.Created.Compare(b.Created) })
	limit := oldest.Created.Add(-slack)
	return d.files.Files(strings.TrimSuffix(mediaPrefix, "/"), func(f File) error {
		if f.Used.Before(limit) {
			return d.files.Remove(f.Name)
		}
		return nil
	})
}
