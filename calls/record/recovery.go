package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/selvage/selvage/fabric"
)

// extension is the file name extension of spools. Other files in the directory are ignored.
const extension = ".spool"

// lookEvery is the interval at which Run searches the directory for spools that no process uses.
const lookEvery = 15 * time.Second

// An attempt records when to retry a spool whose rendering failed.
type attempt struct {
	failures int
	next     time.Time
}

// maxDelay is the maximum time between two attempts.
const maxDelay = 15 * time.Minute

// Run renders spools that no process uses, until ctx is done. These are spools of killed processes,
// and spools whose rendering has failed.
func (s *Spools) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if err := s.enqueueUnlocked(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("could not read the spools of recordings", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// enqueueUnlocked starts rendering all spools that are due and not locked. A spool that cannot be
// opened does not keep the others from being rendered.
func (s *Spools) enqueueUnlocked(ctx context.Context) error {
	entries, err := fs.ReadDir(s.dir.FS(), ".")
	if err != nil {
		return fmt.Errorf("listing spools: %w", err)
	}

	var errs []error
	for _, e := range entries {
		sid, ok := strings.CutSuffix(e.Name(), extension)
		if !ok || !s.isDue(sid) {
			continue
		}
		file, err := s.lockFile(sid)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if file != nil {
			s.interrupt(ctx, file)
			s.enqueue(file, sid)
		}
	}
	return errors.Join(errs...)
}

// isDue reports whether a spool may be rendered now.
func (s *Spools) isDue(sid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && !time.Now().Before(s.delays[sid].next)
}

// postpone delays the next attempt at a spool. The delay doubles after each failure.
func (s *Spools) postpone(sid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.delays[sid]
	a.next = time.Now().Add(min(lookEvery<<min(a.failures, 10), maxDelay))
	a.failures++
	s.delays[sid] = a
}

// enqueue queues a locked spool for rendering. The file is closed afterwards.
func (s *Spools) enqueue(file *os.File, sid string) {
	s.renders.Do(sid, func() {
		defer file.Close()
		if err := s.complete(file, sid); err != nil {
			s.log.Error("making a recording failed; it will be retried", "recording", fabric.HideSid(sid), "error", err)
			s.postpone(sid)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.delays, sid)
	})
}

// complete renders a locked spool and deletes it.
func (s *Spools) complete(file *os.File, sid string) error {
	if err := s.render(context.Background(), file); err != nil {
		return err
	}
	return s.remove(sid)
}

// createFile creates and locks the spool of a recording. If another process deletes the file before
// it is locked, createFile tries again.
func (s *Spools) createFile(sid string) (*os.File, error) {
	for {
		file, err := s.dir.OpenFile(sid+extension, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("creating spool: %w", withoutPath(err))
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			s.discard(file, sid)
			return nil, fmt.Errorf("locking spool: %w", err)
		}
		if s.isCurrent(sid, file) {
			return file, s.syncDir()
		}
		_ = file.Close()
	}
}

// lockFile opens a spool and locks it. It returns a nil file if the spool is already locked or no
// longer exists.
func (s *Spools) lockFile(sid string) (*os.File, error) {
	file, err := s.dir.OpenFile(sid+extension, os.O_RDWR, 0) // NFS locks only files opened for writing
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening spool: %w", withoutPath(err))
	}

	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		_ = file.Close()
		return nil, nil
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking spool: %w", err)
	}
	if !s.isCurrent(sid, file) {
		_ = file.Close()
		return nil, nil
	}
	return file, nil
}

// isCurrent reports whether the spool's name still refers to the open file.
func (s *Spools) isCurrent(sid string, file *os.File) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := s.dir.Lstat(sid + extension)
	return err == nil && os.SameFile(opened, named)
}

// discard deletes a spool that contains no recording, and closes its file.
func (s *Spools) discard(file *os.File, sid string) {
	if err := s.remove(sid); err != nil {
		s.log.Error("could not delete an empty spool", "recording", fabric.HideSid(sid), "error", err)
	}
	_ = file.Close()
}

// remove deletes a spool.
func (s *Spools) remove(sid string) error {
	if err := s.dir.Remove(sid + extension); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing spool: %w", withoutPath(err))
	}
	return nil
}

// withoutPath returns the cause of a failed file operation, without the path. The name of a spool
// contains the complete Sid, which may suffice to fetch the recording.
func withoutPath(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// syncDir makes changes to the directory durable.
func (s *Spools) syncDir() error {
	dir, err := s.dir.Open(".")
	if err != nil {
		return fmt.Errorf("opening spool directory: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("syncing spool directory: %w", err)
	}
	return nil
}
