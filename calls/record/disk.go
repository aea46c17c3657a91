package record

import (
	"fmt"
	"os"
	"syscall"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// minFree is the number of bytes that recordings leave free on their disk. The database and the
// rendering of recordings need them. `selvage doctor` warns at the same limit.
const minFree = 256 << 20

// checkDisk returns an error if a file's disk has too little space for recordings. If the free
// space is unknown, it returns nil.
func (s *Spools) checkDisk(file *os.File) error {
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(int(file.Fd()), &fs); err != nil {
		return nil
	}
	free, least := uint64(fs.Bavail)*uint64(fs.Bsize), s.minFree.Load()
	if free >= least {
		return nil
	}
	return fmt.Errorf("%w: %d MiB of the spools' disk are free, and recordings leave %d MiB",
		problem.New(problem.Unavailable, "no_space", "the disk is nearly full"), free>>20, least>>20)
}

// measureDisk makes taps drop packets while the disk has too little space.
func (p *spool) measureDisk() {
	err := p.owner.checkDisk(p.file)
	p.mu.Lock()
	before := p.low
	p.low = err != nil
	p.mu.Unlock()

	switch sid := fabric.HideSid(p.call.Sid); {
	case err != nil && !before:
		p.owner.log.Error("a recording is interrupted: its disk has too little space", "recording", sid, "error", err)
	case err == nil && before:
		p.owner.log.Info("a recording continues: its disk has space again", "recording", sid)
	}
}
