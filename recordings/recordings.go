// Package recordings stores recorded calls. It defines the type [Recording] and the rules for
// uploads, ownership, retention and price.
//
// [Recordings.Ingest] hashes, parses, measures and stores an upload. Senders delete their copy
// after Ingest returns, so Ingest returns only once the file and its row are on disk. The bytes are
// stored unchanged. If the header is wrong, the row contains the corrected facts and lists the
// repairs. Media is converted to WAV or MP3 when it is read.
//
// Sids are random. By default, anyone who knows a Sid may fetch the media, so a Sid may be shown
// only to callers who may read the recording.
//
// A recording can also be announced before its media exists. It then waits for the media.
//
// A [Store] holds the rows, and a [Media] holds the bytes. Packages laml and rest serve recordings
// over HTTP.
package recordings

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/cache"
	"github.com/selvage/selvage/recordings/wav"
)

// DefaultMaxUpload is the maximum size of an upload, 2 GiB, unless [Config] sets another maximum.
const DefaultMaxUpload = 2 << 30

// DefaultWait is how long an announced recording waits for its media after its last change.
const DefaultWait = 24 * time.Hour

// StubLife is how long the row of a deleted recording remains as a stub.
const StubLife = 40 * 24 * time.Hour

// Config holds the dependencies and limits of a [Recordings].
type Config struct {
	Store Store // holds the rows; required
	Media Media // holds the bytes; required

	// SubscriberOf returns the id of the project's subscriber who has the address "/context/name",
	// or "". If SubscriberOf is nil, recordings are not assigned to subscribers by address.
	SubscriberOf func(ctx context.Context, projectID, address string) (subscriberID string, err error)

	// Calls gives access to the calls that this deployment carries. Nil means no calls.
	Calls Calls

	// CheckURL returns a problem that names param if selvage may not send requests to url. Nil
	// accepts every URL.
	CheckURL func(param, url string) error

	// CountUpload counts an upload to a project. If there were more than perMinute uploads to it
	// within a minute, CountUpload returns problem.RateLimited. Nil counts nothing.
	CountUpload func(ctx context.Context, projectID string, perMinute int64) error

	MaxUpload int64         // maximum size of an upload, in bytes; 0 means DefaultMaxUpload
	Wait      time.Duration // how long a recording waits for its media; 0 means DefaultWait
	Links     Links         // signs links to media; nil disables them

	// CheckMaker returns problem.Unauthenticated if the credentials that created a link were
	// revoked later. maker identifies the credentials, see [Owner], and made is when the link was
	// created. If CheckMaker is nil, links that have a maker are refused.
	CheckMaker func(maker string, made time.Time) error

	Now func() time.Time // nil means time.Now
	Log *slog.Logger     // nil means slog.Default
}

// Recordings implements the rules for recordings. Its methods are safe for concurrent use.
type Recordings struct {
	c Config // with defaults

	quotas    quotas
	measuring chan struct{}           // one token for each upload that is being measured
	decoding  chan struct{}           // one token for each upload in a slow codec that is being measured
	recent    *cache.Cache[Recording] // by owner and Sid; players request one file in many ranges
	facts     *cache.Cache[wav.Facts] // by MediaKey
	auth      *cache.Cache[MediaAuth] // by project
	accesses  accessLog
	retaining sync.Mutex // held while retained is used
	retained  time.Time  // when applyInTurn last called Retention.Apply
}

// New returns Recordings with configuration c.
func New(c Config) *Recordings {
	if c.SubscriberOf == nil {
		c.SubscriberOf = func(context.Context, string, string) (string, error) { return "", nil }
	}
	if c.Calls == nil {
		c.Calls = noCalls{}
	}
	if c.CheckURL == nil {
		c.CheckURL = func(string, string) error { return nil }
	}
	if c.CountUpload == nil {
		c.CountUpload = func(context.Context, string, int64) error { return nil }
	}
	if c.MaxUpload == 0 {
		c.MaxUpload = DefaultMaxUpload
	}
	if c.Wait == 0 {
		c.Wait = DefaultWait
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}

	return &Recordings{
		c:         c,
		measuring: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)), // leaves the other CPUs to requests
		decoding:  make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4)),
		recent:    cache.New[Recording](c.Now),
		facts:     cache.New[wav.Facts](c.Now),
		auth:      cache.New[MediaAuth](c.Now),
	}
}

// MaxUpload returns the maximum size of an upload, in bytes.
func (r *Recordings) MaxUpload() int64 { return r.c.MaxUpload }
