package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/selvage/selvage/internal/problem"
)

// A BucketConfig configures a [Bucket].
type BucketConfig struct {
	Endpoint url.URL // scheme and host of the store
	Name     string  // name of the bucket, which must exist
	Prefix   string  // prefix of all objects, without a slash at the end; may be ""
	Region   string  // region of the bucket; if it is "", the Bucket asks the store
	// Public is the scheme and host at which clients reach the store. If it is empty, they use
	// Endpoint.
	Public url.URL

	// AccessKey and SecretKey are the credentials. If both are "", they come from the environment,
	// as for other programs (AWS_ACCESS_KEY_ID), or from the role of the machine.
	AccessKey, SecretKey string

	// Spool is a directory for uploads while they are being received. Files in it are unlinked when
	// they are created, so that nothing remains after a crash.
	Spool string
	// Cache is the directory for copies of objects. Copies use at most CacheSize bytes. If Cache is
	// "", objects are read from the bucket each time.
	Cache     string
	CacheSize int64
}

// A Bucket keeps blobs in a bucket of an object store that speaks the protocol of Amazon S3. Its
// methods are safe for concurrent use, and several processes may share a bucket.
//
// Each object has checksums in its metadata, and every read is verified with them. If the store
// loses or changes bytes, reading returns an error, never wrong bytes. Objects have the same names
// as files in a [Dir].
type Bucket struct {
	client minio.Core
	public minio.Core // makes links; never sends a request
	name   string
	prefix string

	spool    *os.Root
	reserved int64   // bytes to keep free on the disk of the spool
	cache    *copies // nil without a cache

	mu    sync.Mutex      // guards the fields below
	known map[string]sums // the checksums of recently used objects, by the name of the object
	gone  map[string]bool // names of removed objects that the store may still have; see confirmRemoved
	swept time.Time       // when Sweep last listed the bucket
}

// Limits on the requests to the store, and on what is remembered about objects.
const (
	requestTime = 30 * time.Second // for a request without a body, and for each piece of a body
	uploadTime  = 12 * time.Hour   // for all requests that store one blob
	maxRetries  = 4
	maxKnown    = 4096 // number of objects whose checksums are kept in memory
	maxGone     = 4096 // number of removed objects that Sweep looks for
)

// sumsHeader is the metadata field that holds the checksums of an object.
const sumsHeader = "Selvage-Sums"

// OpenBucket returns a Bucket. It sends no request; use Probe to check that the bucket is usable.
func OpenBucket(c BucketConfig) (*Bucket, error) {
	b, err := newBucket(c)
	if err != nil {
		return nil, err
	}

	if err := os.MkdirAll(c.Spool, 0o700); err != nil {
		return nil, fmt.Errorf("creating directory for uploads: %w", err)
	}
	b.spool, err = os.OpenRoot(c.Spool)
	if err != nil {
		return nil, fmt.Errorf("opening directory for uploads: %w", err)
	}
	if c.Cache == "" {
		return b, nil
	}

	b.cache, err = openCopies(c.Cache, c.CacheSize)
	if err != nil {
		return nil, errors.Join(err, b.spool.Close())
	}
	return b, nil
}

// ProbeBucket is like [Bucket.Probe], but creates no directories.
func ProbeBucket(c BucketConfig) error {
	b, err := newBucket(c)
	if err != nil {
		return err
	}
	return b.Probe()
}

// newBucket returns a Bucket without its directories.
func newBucket(c BucketConfig) (*Bucket, error) {
	creds := c.credentials()
	client, err := newClient(c.Endpoint, creds, c.Region)
	if err != nil {
		return nil, err
	}

	public := client
	if c.Public.Host != "" {
		public, err = newClient(c.Public, creds, c.Region)
		if err != nil {
			return nil, err
		}
	}

	return &Bucket{
		client: *client,
		public: *public,
		name:   c.Name,
		prefix: c.Prefix,
		known:  make(map[string]sums),
		gone:   make(map[string]bool),
	}, nil
}

// credentials returns the configured credentials, or else those of the environment or the machine.
func (c BucketConfig) credentials() *credentials.Credentials {
	if c.AccessKey == "" && c.SecretKey == "" {
		return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.IAM{}})
	}
	return credentials.NewStaticV4(c.AccessKey, c.SecretKey, "")
}

func newClient(endpoint url.URL, creds *credentials.Credentials, region string) (*minio.Core, error) {
	client, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds:      creds,
		Secure:     endpoint.Scheme == "https",
		Region:     region,
		MaxRetries: maxRetries,
	})
	if err != nil {
		return nil, fmt.Errorf("opening bucket: %w", err)
	}
	client.SetAppInfo("selvage", "1")
	return client, nil
}

// Close closes the bucket. It waits for copies that are being made.
func (b *Bucket) Close() error {
	err := b.spool.Close()
	if b.cache != nil {
		err = errors.Join(err, b.cache.close())
	}
	return err
}

// Reserve is like [Dir.Reserve], but for the disk of the spool directory.
func (b *Bucket) Reserve(bytes int64) { b.reserved = bytes }

// Probe checks that the store can be reached, and that the bucket exists.
func (b *Bucket) Probe() error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	exists, err := b.client.BucketExists(ctx, b.name)
	if err != nil {
		return fmt.Errorf("reaching the store of recordings: %w", err)
	}
	if !exists {
		return fmt.Errorf("reaching the store of recordings: the bucket %s does not exist", b.name)
	}
	return nil
}

// object returns the name of the object for a file with the given name in a [Dir].
func (b *Bucket) object(file string) string { return path.Join(b.prefix, file) }

// ReadPart implements [Store].
func (b *Bucket) ReadPart(key, part string) ([]byte, error) {
	file, err := partOf(key, part)
	if err != nil {
		return nil, err
	}
	o, err := b.open(b.object(file))
	if err != nil {
		return nil, err
	}
	defer o.Close()
	content, err := io.ReadAll(o)
	if err != nil {
		return nil, fmt.Errorf("reading part of blob: %w", err)
	}
	return content, nil
}

// Remove implements [Store]. If the store fails, or confirms a removal that it does not carry out,
// later calls of Sweep remove the objects.
func (b *Bucket) Remove(key string, parts ...string) error {
	objects, err := b.objectsOf(key, parts)
	if err != nil {
		return err
	}
	b.doubt(objects)
	return b.removeObjects(key, objects)
}

// removeObjects removes the objects of a key, and its copy in the cache.
func (b *Bucket) removeObjects(key string, objects []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	var errs []error
	for _, object := range objects {
		errs = append(errs, b.removeObject(ctx, object))
	}
	if b.cache != nil {
		errs = append(errs, b.cache.remove(key))
	}
	return errors.Join(errs...)
}

// objectsOf returns the names of the parts of a key, and then of its blob.
func (b *Bucket) objectsOf(key string, parts []string) ([]string, error) {
	var objects []string
	for _, part := range parts {
		file, err := partOf(key, part)
		if err != nil {
			return nil, err
		}
		objects = append(objects, b.object(file))
	}
	name, err := nameOf(key)
	if err != nil {
		return nil, err
	}
	return append(objects, b.object(name)), nil
}

func (b *Bucket) removeObject(ctx context.Context, name string) error {
	b.forget(name)
	err := storeError(b.client.RemoveObject(ctx, b.name, name, minio.RemoveObjectOptions{}))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing blob: %w", err)
	}
	return nil
}

// Link returns a URL at which anyone can read the bytes of a key for the given time. The response
// has the headers in h, as far as S3 lets a URL set them.
func (b *Bucket) Link(key string, valid time.Duration, h map[string]string) (string, error) {
	name, err := nameOf(key)
	if err != nil {
		return "", err
	}

	query := make(url.Values)
	for header, value := range h {
		query.Set("response-"+strings.ToLower(header), value)
	}

	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	u, err := b.public.PresignedGetObject(ctx, b.name, b.object(name), valid, query)
	if err != nil {
		return "", fmt.Errorf("linking to blob: %w", storeError(err))
	}
	return u.String(), nil
}

// remember keeps the checksums of an object. If there are too many, it first forgets all others.
func (b *Bucket) remember(name string, s sums) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.known) >= maxKnown {
		clear(b.known)
	}
	b.known[name] = s
}

func (b *Bucket) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, name)
}

func (b *Bucket) recall(name string) (sums, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.known[name]
	return s, ok
}

// storeError returns fs.ErrNotExist for a missing object. Any other error that is not a problem yet
// becomes problem.Unavailable, with the error of the store as its cause.
func storeError(err error) error {
	if err == nil || problem.First(err) != nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	code := minio.ToErrorResponse(err).Code
	if code == minio.NoSuchKey || code == "NotFound" {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return errors.Join(&problem.Error{
		Kind:       problem.Unavailable,
		Code:       "temporarily_unavailable",
		Message:    "recordings cannot be stored or read at the moment",
		RetryAfter: 10 * time.Second,
	}, err)
}
