package recordings

import (
	"context"
	"time"

	"github.com/selvage/selvage/internal/page"
)

// A Store holds the rows. Its methods are safe for concurrent use, and change each recording
// atomically. If a method sets a status that the recording's callback wants, it also queues a delivery.
type Store interface {
	// AddRecording inserts a recording, or completes the announced recording that is waiting for
	// this media. The recording gets the MediaKey of a.Twin if the twin is not deleted. If the
	// project has a recording with the same identity that is not deleted, AddRecording changes
	// nothing and returns the existing recording; added is then false. Only one of several concurrent
	// callers adds the recording. If a.Sid names a recording that is not waiting, AddRecording
	// returns problem.Invalid, unless a.Late is set and the recording has never received media.
	AddRecording(ctx context.Context, r Recording, a Arrival) (kept Recording, added bool, err error)
	// UpdateRecording writes the status and the other Live fields of a waiting recording. old is
	// the time of the last change that the caller knows. If the stored recording has changed since
	// then, it returns problem.Conflict. identity is the identity shared with other announcements
	// of the same recording, or "".
	UpdateRecording(ctx context.Context, r Recording, identity string, old time.Time) error
	// AwaitsMedia reports whether a recording of the call or conference in m is waiting for its
	// media.
	AwaitsMedia(ctx context.Context, projectID string, m Metadata) (bool, error)
	// GiveUpRecordings marks waiting recordings as Absent if their deadline was before until. A
	// recording of a call or conference that this installation carries waits at least for the duration wait after
	// the end of the call or conference, but not forever if this end is never recorded.
	GiveUpRecordings(ctx context.Context, until time.Time, wait time.Duration) error

	// FindRecording returns one of the owner's recordings. If the recording is unknown or deleted,
	// FindRecording returns problem.NotFound.
	FindRecording(ctx context.Context, o Owner, sid string) (Recording, error)
	// ListRecordings returns a page, newest first, or sorted by call id if the filter has
	// CallBegins. If too many numbers end with the digits of Party or begin with PartyBegins, or
	// if Name has no words or too many, it returns problem.Invalid.
	ListRecordings(ctx context.Context, f Filter, q page.Query) (page.Page[Recording], error)
	// IndexRecordings prepares recordings that an older version stored, so that searches by number
	// and by name find them.
	IndexRecordings(ctx context.Context) error
	// FindRecordingsBeginning returns at most fifty recordings of the project whose Sids begin with
	// sid. It omits deleted recordings.
	FindRecordingsBeginning(ctx context.Context, projectID, sid string) ([]Recording, error)

	// MarkRecording calls change with the marks of a recording of the project and stores the
	// result. It may call change repeatedly.
	MarkRecording(
		ctx context.Context, projectID, sid string, change func(*Marks) error, at time.Time,
	) (Recording, error)

	// DeleteRecording turns a recording of the project into a stub and returns its MediaKey, which
	// other recordings may share. If the recording is unknown or already deleted, it returns
	// problem.NotFound. If the recording is on hold, it returns ErrHeld. If it has changed after
	// how.Unchanged, it returns problem.Conflict.
	DeleteRecording(ctx context.Context, projectID, sid string, how Removal) (key string, err error)
	// SweepRecordings removes the stubs of recordings that were deleted before the given time.
	SweepRecordings(ctx context.Context, before time.Time) error

	// MediaInUse returns the MediaKeys from first to last, both inclusive, of recordings that are
	// not deleted.
	MediaInUse(ctx context.Context, first, last string) ([]string, error)
	// FindTwin returns the oldest recording of the same project whose file has the same size,
	// SHA-256, format and levels as r. It skips deleted recordings. If no recording matches,
	// FindTwin returns the zero Twin.
	FindTwin(ctx context.Context, r Recording) (Twin, error)
	// StoredBytes returns the bytes that the recordings of a project use.
	StoredBytes(ctx context.Context, projectID string) (int64, error)

	ProjectStore
	DeliveryStore
	RetentionStore
	UsageStore
	AccessStore
}

// A ProjectStore reads the settings of a project that apply to its recordings.
type ProjectStore interface {
	// Terms returns a project's terms for uploads. If the project is unknown, it returns
	// problem.NotFound.
	Terms(ctx context.Context, projectID string) (Terms, error)
	// MediaAuth returns who may fetch the media of a project. If the project is unknown, it returns
	// problem.NotFound.
	MediaAuth(ctx context.Context, projectID string) (MediaAuth, error)
	// HasSubscriber reports whether the project has this subscriber.
	HasSubscriber(ctx context.Context, projectID, subscriberID string) (bool, error)
}

// An Arrival contains the facts about an upload that a store needs in addition to the recording.
type Arrival struct {
	Identity      string   // shared by repetitions of the upload; "" without an identity
	SubscriberIDs []string // subscribers that own the recording

	// Given contains the properties of the call that the sender set, without defaults. They take
	// precedence over the fields of the waiting recording.
	Given Metadata

	// Sid names the waiting recording. If Sid is "", the upload completes a waiting recording of
	// the same call or conference that has the same track or both tracks. Of several, the upload
	// completes one with the same track if possible, and the oldest of these. Recordings of calls
	// that this installation carries are completed only by their Sid.
	Sid string
	// Late allows Sid to name a recording that no longer waits for media.
	Late bool

	// Twin is a stored recording with the same file. If it still exists, the new recording gets its
	// MediaKey.
	Twin Twin
}

// A Twin is a stored recording with the same file as an upload. The zero Twin means none.
type Twin struct {
	ID       string
	MediaKey string
}
