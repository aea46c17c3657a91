package recordings

import (
	"context"
	"io"
)

// A File is media that is being written. It is read only after all bytes were written.
type File = interface {
	io.Writer
	io.ReaderAt
}

// A Media stores immutable bytes under a key, which is the MediaKey of their recording. Its methods
// are safe for concurrent use by several processes.
type Media interface {
	// Put stores the file that write fills, and the small parts that write returns by name. After
	// everything is safe on disk, Put calls commit, which creates the row. If write fails, or
	// commit returns keep false, Put removes the bytes before it returns. If commit fails, a later
	// Sweep removes the bytes unless the row exists. A part never exists without the bytes of its
	// key.
	Put(
		key string,
		write func(f File) (parts map[string][]byte, err error),
		commit func() (keep bool, err error),
	) error
	// Open returns the bytes with this key. If they are in a file on disk, the result is an
	// *os.File, so that the kernel can send it. If the key does not exist, Open returns
	// fs.ErrNotExist.
	Open(key string) (io.ReadSeekCloser, error)
	// ReadPart returns a part that was stored with a key. If the part does not exist, ReadPart
	// returns fs.ErrNotExist.
	ReadPart(key, part string) ([]byte, error)
	// Remove deletes the bytes with this key and the given parts. It ignores missing bytes and
	// parts. Readers that have the bytes open can continue.
	Remove(key string, parts ...string) error
	// Sweep deletes bytes and parts that no Put is writing and whose key is not in use. inUse
	// returns the keys in use from first to last, both inclusive.
	Sweep(ctx context.Context, inUse func(ctx context.Context, first, last string) ([]string, error)) error
}
