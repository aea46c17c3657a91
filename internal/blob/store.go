package blob

import (
	"context"
	"io"
)

// A File is a blob that is being written. It may be read once everything has been written.
type File = interface {
	io.Writer
	io.ReaderAt
}

// A Store holds blobs: a [Dir], a [Bucket], or another Store whose blobs are [Sealed].
type Store interface {
	// Put stores a new blob under a key that was never used before. It calls write, which fills
	// the file and returns the parts by name. When everything is durable, Put calls commit, which
	// creates the row that owns the blob. If write fails, or commit returns false without an
	// error, Put deletes the blob. If commit fails, its row may or may not exist, so Put leaves the
	// blob to Sweep.
	Put(
		key string,
		write func(f File) (parts map[string][]byte, err error),
		commit func() (keep bool, err error),
	) error
	// Open returns the bytes of a key, which also implement io.ReaderAt. For an unknown key, the
	// error is fs.ErrNotExist.
	Open(key string) (io.ReadSeekCloser, error)
	// ReadPart returns a part of a key. For an unknown part, the error is fs.ErrNotExist.
	ReadPart(key, part string) ([]byte, error)
	// Remove deletes the bytes of a key and the given parts. Missing ones are not an error.
	Remove(key string, parts ...string) error
	// Sweep deletes blobs without an owner. It may run at any time, in several processes.
	Sweep(ctx context.Context, inUse InUse) error
	// Probe checks that the store can be used.
	Probe() error
	// Restore writes a file from a backup: the bytes of a key or, if part is not "", one of its
	// parts. The store must not be in use. The file is durable after the caller has called Settle.
	Restore(key, part string, write func(w io.Writer) error) error
	// Settle returns once all files that Restore has written are durable.
	Settle()
	// Close closes the store.
	Close() error
}
