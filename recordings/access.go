package recordings

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/uuid7"
)

// When batchSize accesses are pending, they are written immediately. While writing fails, at most
// maxPending accesses are kept. Additional accesses are lost.
const (
	batchSize  = 1000
	maxPending = 10 * batchSize
)

// An Access describes the requests of one client, within an hour, for the media of a recording in
// one format.
type Access struct {
	ID          string // IDs are in the order of the first requests
	RecordingID string
	Actor       string // the client's credentials, such as "key:ID" or "operator:ID", or Anyone
	Address     string // the client's IP address; for Anyone with IPv6, its /64
	Format      Format
	Requests    int64
	Bytes       int64 // requested bytes; a client may have stopped reading earlier
	First, Last time.Time
}

// Anyone is the Actor of clients without credentials.
const Anyone = "public"

// Actor returns the actor of an access by the owner.
func (o Owner) Actor() string {
	if o.OperatorID != "" {
		return "operator:" + o.OperatorID
	}
	if o.SubscriberID != "" {
		return "subscriber:" + o.SubscriberID
	}
	kind, rest, _ := strings.Cut(o.Maker, "\n")
	id, _, _ := strings.Cut(rest, "\n")
	if id == "" {
		return Anyone
	}
	return kind + ":" + id
}

// Hour returns the number of hours from 1970 to the first request.
func (a Access) Hour() int64 { return a.First.Unix() / 3600 }

// An AccessStore holds the accesses to media.
type AccessStore interface {
	// AddAccesses adds accesses to the stored accesses. Accesses to recordings that no longer exist
	// are dropped.
	AddAccesses(ctx context.Context, all []Access) error
	// ListAccesses returns a page of the accesses to a recording, the latest first.
	ListAccesses(ctx context.Context, recordingID string, q page.Query) (page.Page[Access], error)
}

// An accessLog holds accesses that are not yet written.
type accessLog struct {
	writing sync.Mutex // held while accesses are written

	mu      sync.Mutex // held only briefly, because every request for media needs it
	pending map[accessKey]*Access
}

type accessKey struct {
	recordingID, actor, address string
	format                      Format
	hour                        int64
}

// NoteAccess records that a client requested bytes of a recording's media. The access stays in
// memory until [Recordings.FlushAccesses] writes it. If the process is killed earlier, the access
// is lost.
func (r *Recordings) NoteAccess(ctx context.Context, a Access) {
	a.Requests = 1
	a.First = r.c.Now().Truncate(time.Microsecond)
	a.Last = a.First
	if a.Actor == Anyone {
		a.Address = networkOf(a.Address)
	}
	key := accessKey{
		recordingID: a.RecordingID,
		actor:       a.Actor,
		address:     a.Address,
		format:      a.Format,
		hour:        a.Hour(),
	}

	if full := r.accesses.add(key, a); !full {
		return
	}
	if err := r.FlushAccesses(context.WithoutCancel(ctx)); err != nil {
		r.c.Log.ErrorContext(ctx, "writing accesses to recordings", "error", err)
	}
}

// add adds a request to the pending accesses. It reports whether a batch is now full.
func (l *accessLog) add(key accessKey, a Access) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.merge(key, &a) && len(l.pending)%batchSize == 0
}

// merge adds an access to the pending access with the same key, or as a new entry if there is room.
// It reports whether it has added an entry. Callers hold mu.
func (l *accessLog) merge(key accessKey, a *Access) bool {
	if l.pending == nil {
		l.pending = make(map[accessKey]*Access)
	}
	if known := l.pending[key]; known != nil {
		known.Requests += a.Requests
		known.Bytes += a.Bytes
		if a.First.Before(known.First) {
			known.First = a.First
		}
		if a.Last.After(known.Last) {
			known.Last = a.Last
		}
		return false
	}
	if len(l.pending) >= maxPending {
		return false
	}
	l.pending[key] = a
	return true
}

// take removes and returns the pending accesses.
func (l *accessLog) take() map[accessKey]*Access {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.pending
	l.pending = nil
	return taken
}

// restore makes accesses pending again after they could not be written.
func (l *accessLog) restore(taken map[accessKey]*Access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	newer := l.pending
	l.pending = taken
	for key, a := range newer {
		l.merge(key, a)
	}
}

// networkOf returns the /64 of an IPv6 address, and other text unchanged. A client with IPv6
// usually has a whole /64. By using many of its addresses, it could make the log grow without
// limit.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Unmap().Is4() {
		return address
	}
	network, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return address
	}
	return network.String()
}

// FlushAccesses writes the pending accesses. If writing fails, they stay pending. Call it every few seconds,
// and before the process ends.
func (r *Recordings) FlushAccesses(ctx context.Context) error {
	r.accesses.writing.Lock() // wait for another call, because the caller may read what that call writes
	defer r.accesses.writing.Unlock()
	taken := r.accesses.take()
	if len(taken) == 0 {
		return nil
	}

	batch := make([]Access, 0, len(taken))
	for _, a := range taken {
		a.ID = uuid7.At(a.First)
		batch = append(batch, *a)
	}
	slices.SortFunc(batch, func(a, b Access) int { // a fixed order prevents deadlocks between nodes
		return cmp.Or(
			cmp.Compare(a.RecordingID, b.RecordingID),
			cmp.Compare(a.Actor, b.Actor),
			cmp.Compare(a.Address, b.Address),
			cmp.Compare(a.Format, b.Format),
		)
	})
	if err := r.c.Store.AddAccesses(ctx, batch); err != nil {
		r.accesses.restore(taken)
		return err
	}
	return nil
}

// ListAccesses returns a page of the accesses to the media of a project's recording, the latest
// first. Accesses that other nodes have not yet written are missing.
func (r *Recordings) ListAccesses(
	ctx context.Context, projectID, sid string, q page.Query,
) (page.Page[Access], error) {
	rec, err := r.Find(ctx, Owner{ProjectID: projectID}, sid)
	if err != nil {
		return page.Page[Access]{}, err
	}
	if err := r.FlushAccesses(ctx); err != nil {
		return page.Page[Access]{}, err
	}
	return r.c.Store.ListAccesses(ctx, rec.ID, q)
}
