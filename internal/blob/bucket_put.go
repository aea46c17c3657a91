package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/minio/minio-go/v7"
)

// sendSize is the size in bytes of the pieces in which a larger file is sent (a multipart upload).
const sendSize = 16 << 20

// Put implements [Store]. The function write fills a local file. Put sends the complete file to the
// bucket, and checks that the bucket has it before it calls commit.
func (b *Bucket) Put(
	key string,
	write func(f File) (parts map[string][]byte, err error),
	commit func() (keep bool, err error),
) error {
	if _, err := nameOf(key); err != nil {
		return err
	}
	if err := b.checkFree(); err != nil {
		return unavailable(err)
	}
	f, err := b.receive()
	if err != nil {
		return unavailable(err)
	}
	defer f.Close()

	parts, err := write(f)
	if err != nil {
		return unavailable(err)
	}

	objects, err := b.objectsOf(key, slices.Collect(maps.Keys(parts)))
	if err != nil {
		return err
	}

	if err := b.send(key, f, parts); err != nil {
		return errors.Join(err, b.removeObjects(key, objects))
	}
	keep, err := commit()
	if err != nil || keep {
		return err
	}
	return b.removeObjects(key, objects)
}

// receive creates a local file without a name, which disappears when it is closed.
func (b *Bucket) receive() (*os.File, error) {
	name := rand.Text()
	f, err := b.spool.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating file of an upload: %w", err)
	}
	if err := b.spool.Remove(name); err != nil {
		return nil, errors.Join(fmt.Errorf("removing name of an upload: %w", err), f.Close())
	}
	return f, nil
}

// send stores a file and its parts. It takes at most uploadTime, so that Sweep can tell from the age of an
// object whether it belongs to an upload in progress or remains from a crash.
func (b *Bucket) send(key string, f *os.File, parts map[string][]byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), uploadTime)
	defer cancel()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("reading file of an upload: %w", err)
	}
	name, err := nameOf(key)
	if err != nil {
		return err
	}
	if err := b.sendObject(ctx, b.object(name), f, info.Size()); err != nil {
		return err
	}

	for part, content := range parts {
		file, err := partOf(key, part)
		if err != nil {
			return err
		}
		if err := b.sendObject(ctx, b.object(file), bytes.NewReader(content), int64(len(content))); err != nil {
			return err
		}
	}
	return nil
}

// sendObject stores an object and checks that the store has it.
func (b *Bucket) sendObject(ctx context.Context, name string, content io.ReaderAt, size int64) error {
	s, err := sumUp(content, size)
	if err != nil {
		return unavailable(err)
	}
	options := minio.PutObjectOptions{
		ContentType:  "application/octet-stream",
		UserMetadata: map[string]string{sumsHeader: s.String()},
		PartSize:     sendSize,
	}
	reader := io.NewSectionReader(content, 0, size)
	if _, err := b.client.Client.PutObject(ctx, b.name, name, reader, size, options); err != nil {
		return fmt.Errorf("storing blob: %w", storeError(err))
	}

	if err := b.checkStored(ctx, name, s); err != nil {
		return fmt.Errorf("checking blob: %w", storeError(err))
	}
	b.remember(name, s)
	return nil
}

// checkStored checks that the store has an object with the given size and checksums.
func (b *Bucket) checkStored(ctx context.Context, name string, want sums) error {
	stored, err := b.client.StatObject(ctx, b.name, name, minio.StatObjectOptions{})
	if err != nil {
		return err
	}
	if stored.Size != want.size {
		return fmt.Errorf("the store has %d bytes of %d", stored.Size, want.size)
	}
	if stored.UserMetadata[sumsHeader] != want.String() {
		return errors.New("the checksums in the store differ from those that were sent")
	}
	return nil
}

// Restore implements [Store].
func (b *Bucket) Restore(key, part string, write func(w io.Writer) error) error {
	name, err := nameOf(key)
	if part != "" {
		name, err = partOf(key, part)
	}
	if err != nil {
		return err
	}

	f, err := b.receive()
	if err != nil {
		return err
	}
	defer f.Close()

	if err := write(f); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("restoring blob: %w", err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), uploadTime)
	defer cancel()
	return b.sendObject(ctx, b.object(name), f, info.Size())
}

// Settle implements [Store]. Objects are durable once they are stored.
func (b *Bucket) Settle() {}
