package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/minio/minio-go/v7"
)

// firstWindow is the number of bytes that the first request asks for. A request that continues the
// previous one asks for four times as many bytes, but for at most lastWindow.
const (
	firstWindow = 1 << 20
	lastWindow  = 64 << 20
)

// ErrDamaged is the cause of a problem.Unavailable if an object store has lost or changed bytes of a
// blob. During an outage of the store, the cause is another error.
var ErrDamaged = errors.New("the store has lost or changed bytes")

// Open implements [Store]. If a copy is in the cache, the result is its *os.File.
func (b *Bucket) Open(key string) (io.ReadSeekCloser, error) {
	name, err := nameOf(key)
	if err != nil {
		return nil, err
	}
	if b.cache == nil {
		return b.open(b.object(name))
	}

	if f, err := b.cache.open(key); err == nil {
		return f, nil
	}
	o, err := b.open(b.object(name))
	if err != nil {
		return nil, err
	}
	b.cache.add(key, o.sums.size, func() (io.ReadCloser, error) { return b.open(o.name) })
	return o, nil
}

// open opens an object. If its checksums are not known, open requests the beginning of the object,
// because the response also contains the checksums.
func (b *Bucket) open(name string) (*object, error) {
	o := &object{bucket: b, name: name}
	o.pieces.load = o.loadTwice
	if s, known := b.recall(name); known {
		o.use(s)
		return o, nil
	}
	if err := o.request(0); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// An object reads an object of a bucket, and verifies what it reads.
type object struct {
	pieces
	bucket *Bucket
	name   string
	sums   sums

	body   io.ReadCloser // the response to the last request, or nil
	cancel func()        // ends that request
	next   int64         // the index of the next piece in body
	end    int64         // the index of the first piece that body does not contain completely
	window int64         // size of the last request, in bytes
}

// use sets the checksums.
func (o *object) use(s sums) { o.sums, o.size, o.piece = s, s.size, s.piece }

// Close implements [io.Closer].
func (o *object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.drop()
}

// drop ends the last request.
func (o *object) drop() error {
	if o.body == nil {
		return nil
	}
	err := o.body.Close()
	o.cancel()
	o.body = nil
	return err
}

// loadTwice reads piece i and verifies it. If the piece is wrong or incomplete, loadTwice requests
// it once more.
func (o *object) loadTwice(i int64, piece []byte) error {
	var err error
	for range 2 {
		if err = o.loadPiece(i, piece); err == nil || errors.Is(err, fs.ErrNotExist) {
			break
		}
		_ = o.drop() // the error of reading is the one to return
		o.window = 0
	}
	if err != nil {
		o.bucket.forget(o.name) // the object may be gone
		return fmt.Errorf("reading blob: %w", storeError(err))
	}
	return nil
}

func (o *object) loadPiece(i int64, piece []byte) error {
	if o.body == nil || o.next != i || o.next >= o.end {
		if err := o.request(i); err != nil {
			return err
		}
	}

	late := time.AfterFunc(requestTime, o.cancel)
	defer late.Stop()
	if n, err := io.ReadFull(o.body, piece); err != nil {
		return fmt.Errorf("the store sent %d bytes of %d: %w", n, len(piece), err)
	}
	if !o.sums.verify(i, piece) {
		return fmt.Errorf("%w: those from %d on have a different checksum", ErrDamaged, i*o.piece)
	}
	o.next++
	return nil
}

// request requests pieces, beginning with piece i. Without checksums, i must be 0.
func (o *object) request(i int64) error {
	follows := o.next == i && o.window > 0
	if err := o.drop(); err != nil {
		return err
	}
	if o.window = min(lastWindow, 4*o.window); !follows {
		o.window = firstWindow
	}
	o.window = max(o.window, o.piece)
	first, last := i*o.piece, i*o.piece+o.window-1
	if o.size > 0 {
		last = min(last, o.size-1)
	}

	var options minio.GetObjectOptions
	if err := options.SetRange(first, last); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	late := time.AfterFunc(requestTime, cancel)
	defer late.Stop()
	body, info, _, err := o.bucket.client.GetObject(ctx, o.bucket.name, o.name, options)
	if err != nil {
		cancel()
		if minio.ToErrorResponse(err).Code == minio.InvalidRange { // the object ends before this piece
			err = errors.Join(ErrDamaged, err)
		}
		return storeError(err)
	}
	o.body, o.cancel = body, cancel
	return o.expect(i, info)
}

// expect prepares for reading the response to a request for pieces, beginning with piece i.
func (o *object) expect(i int64, info minio.ObjectInfo) error {
	s, err := parseSums(info.UserMetadata[sumsHeader])
	if err != nil {
		return storeError(err)
	}
	o.use(s)
	o.bucket.remember(o.name, s)
	want := min(o.window, s.size-i*s.piece)
	if info.Size >= 0 && info.Size < want { // a response that is cut off has the full size here
		return storeError(fmt.Errorf("%w: %d bytes are left of %d", ErrDamaged, info.Size, want))
	}
	o.next, o.end = i, i+o.window/s.piece
	if i*s.piece+o.window >= s.size {
		o.end = s.count()
	}
	return nil
}
