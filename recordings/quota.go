package recordings

import (
	"context"
	"sync"
	"time"

	"github.com/selvage/selvage/internal/problem"
)

// Terms are the price that a project pays for uploads, and the limits on them.
type Terms struct {
	RecordRate int64 // price per started minute, in millionths of a dollar
	Quota      int64 // maximum bytes of the project's recordings; 0 means no limit
	UploadRate int64 // maximum uploads per minute; 0 means no limit
}

// A node sums up the bytes of a project when it needs them and its last sum is older than sumLife.
// Between sums, it counts only its own uploads. Before it refuses an upload, it sums up again if
// the sum is older than refusalLife, because recordings may have been deleted.
const (
	sumLife     = time.Minute
	refusalLife = 5 * time.Second
)

// quotas contains the bytes that projects with a quota use.
type quotas struct {
	mu       sync.Mutex
	projects map[string]*usedBytes
}

// A usedBytes is the number of bytes that a project uses.
type usedBytes struct {
	mu      sync.Mutex
	summed  time.Time // when sum was read; zero means never
	sum     int64     // the stored bytes
	added   int64     // bytes that uploads have added since sum was read
	pending int64     // bytes of uploads that are being stored
}

// of returns the bytes that a project uses.
func (q *quotas) of(projectID string) *usedBytes {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.projects == nil {
		q.projects = make(map[string]*usedBytes)
	}
	u := q.projects[projectID]
	if u == nil {
		u = new(usedBytes)
		q.projects[projectID] = u
	}
	return u
}

// reserve takes bytes of a project's quota for an upload. After the upload, the caller must call
// settle with the number of added bytes. If bytes is 0, reserve only checks that the quota is not
// exceeded. Thus, a repeated upload still succeeds if the quota is exactly used up. If the quota
// does not suffice, reserve returns problem.Forbidden.
func (r *Recordings) reserve(
	ctx context.Context, projectID string, quota, bytes int64,
) (settle func(added int64), err error) {
	nothing := func(int64) {}
	if quota == 0 {
		return nothing, nil
	}

	u := r.quotas.of(projectID)
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, life := range []time.Duration{sumLife, refusalLife} {
		now := r.c.Now()
		if u.summed.IsZero() || now.Sub(u.summed) >= life {
			sum, err := r.c.Store.StoredBytes(ctx, projectID)
			if err != nil {
				return nothing, err
			}
			u.sum = sum
			u.added = 0
			u.summed = now
		}
		if u.used()+bytes <= quota {
			u.pending += bytes
			return func(added int64) { u.settle(bytes, added) }, nil
		}
	}

	return nothing, problem.New(problem.Forbidden, "quota_exceeded",
		"the recordings of the project use %d bytes of its quota of %d: delete some, or raise the quota",
		u.used(), quota)
}

// Stored returns a project's terms for uploads, and the bytes that its recordings use. Recordings
// that share their media count once.
func (r *Recordings) Stored(ctx context.Context, projectID string) (terms Terms, bytes int64, err error) {
	terms, err = r.c.Store.Terms(ctx, projectID)
	if err != nil {
		return Terms{}, 0, err
	}
	bytes, err = r.c.Store.StoredBytes(ctx, projectID)
	if err != nil {
		return Terms{}, 0, err
	}
	return terms, bytes, nil
}

// used returns all bytes in use.
func (u *usedBytes) used() int64 { return u.sum + u.added + u.pending }

// settle ends a reservation.
func (u *usedBytes) settle(reserved, added int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending -= reserved
	u.added += added
}

// admit returns the terms for an upload. It returns problem.RateLimited if the project has had too
// many uploads within a minute, and problem.Forbidden if its quota is exceeded. It runs before the
// body is read.
func (r *Recordings) admit(ctx context.Context, u Upload) (Terms, error) {
	terms, err := r.c.Store.Terms(ctx, u.ProjectID)
	if err != nil {
		return Terms{}, err
	}
	if u.Own {
		terms.Quota = 0
		return terms, nil
	}
	if terms.UploadRate > 0 && !u.Imported {
		if err := r.c.CountUpload(ctx, u.ProjectID, terms.UploadRate); err != nil {
			return Terms{}, err
		}
	}
	if _, err := r.reserve(ctx, u.ProjectID, terms.Quota, 0); err != nil {
		return Terms{}, err
	}
	return terms, nil
}
