package record

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/selvage/selvage/fabric"
)

const (
	writeEvery = 250 * time.Millisecond // a killed process loses at most this much
	syncEvery  = 750 * time.Millisecond // a power failure loses at most the sum of both times, one second

	// lastTries is how many times run tries to write the end of a recording. It tries once a
	// second.
	lastTries = 30
)

// create creates the file with its header, durably.
func (p *spool) create() error {
	header, err := json.Marshal(p.call)
	if err != nil {
		return fmt.Errorf("writing spool: %w", err)
	}
	if len(header) > math.MaxUint16 {
		return fmt.Errorf("writing spool: the header is too long, with %d bytes", len(header))
	}
	block := appendEntry(make([]byte, blockHead), headerKind, 0, len(header))
	block = append(block, header...)
	p.sum = seal(block, firstSum())

	p.file, err = p.owner.createFile(p.call.Sid)
	if err != nil {
		return err
	}
	if err := p.writeHeader(block); err != nil {
		p.owner.discard(p.file, p.call.Sid)
		return fmt.Errorf("writing spool: %w", withoutPath(err))
	}
	return nil
}

// writeHeader writes the magic and the first block, durably, if the disk has enough space.
func (p *spool) writeHeader(block []byte) error {
	if err := p.owner.checkDisk(p.file); err != nil {
		return err
	}
	n, err := p.file.Write(append([]byte(magic), block...))
	p.offset = int64(n)
	if err != nil {
		return err
	}
	return p.file.Sync()
}

// run writes the entries from the taps until the recording stops, and then queues the spool for
// rendering.
func (p *spool) run() {
	defer close(p.done)
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()

	for synced := time.Now(); ; {
		select {
		case now := <-ticker.C:
			written := p.write()
			if now.Sub(synced) >= syncEvery {
				if p.sync() && written {
					p.durable.Store(now.UnixNano())
				}
				p.measureDisk()
				synced = now
			}
		case <-p.stop:
			p.finish(ticker)
			return
		}
	}
}

// finish writes the end of the recording. If the disk does not accept it, the recording ends with
// the last block on disk.
func (p *spool) finish(ticker *time.Ticker) {
	ticker.Reset(time.Second)
	for range lastTries {
		if p.write() && p.sync() {
			break
		}
		<-ticker.C
	}
	p.owner.forget(p.call.Sid)
	p.owner.enqueue(p.file, p.call.Sid)
}

// write writes the waiting entries, and reports whether all of them are in the file. If a block
// cannot be written, the next call writes it to the same place.
func (p *spool) write() bool {
	for range 2 { // a block that failed earlier, and a block with the later entries
		if p.sealed == nil && !p.takeBlock() {
			return true
		}
		if _, err := p.file.WriteAt(p.sealed, p.offset); err != nil {
			p.report(err)
			return false
		}
		p.offset += int64(len(p.sealed))
		p.owner.bytes.Add(uint64(len(p.sealed)))
		p.spare = p.sealed[:blockHead]
		p.sealed = nil
	}
	return true
}

// takeBlock makes the taps fill the spare buffer, and seals the buffer that they have filled. It
// returns false if this buffer is empty. sealed must be nil.
func (p *spool) takeBlock() bool {
	p.mu.Lock()
	block := p.open
	if len(block) == blockHead {
		p.mu.Unlock()
		return false
	}
	p.open = p.spare
	p.mu.Unlock()

	p.sealed = block
	p.spare = nil
	p.sum = seal(block, p.sum)
	return true
}

// sync tries to make the file durable, and reports whether it has succeeded.
func (p *spool) sync() bool {
	err := p.file.Sync()
	p.report(err)
	return err == nil
}

// report logs when the disk begins to fail, and when it works again.
func (p *spool) report(err error) {
	switch {
	case err != nil && !p.failed:
		p.owner.log.Error("could not write a recording to disk",
			"recording", fabric.HideSid(p.call.Sid), "error", withoutPath(err))
	case err == nil && p.failed:
		p.owner.log.Info("a recording is written to disk again", "recording", fabric.HideSid(p.call.Sid))
	}
	p.failed = err != nil
}
