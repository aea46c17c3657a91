package recordings

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/uuid7"
	"github.com/selvage/selvage/recordings/audio"
	"github.com/selvage/selvage/recordings/levels"
	"github.com/selvage/selvage/recordings/wav"
)

// An Upload is a file that is being received.
type Upload struct {
	ProjectID string
	Body      io.Reader
	// Describe returns the description. It is called after Body has been read to the end, since
	// form fields may follow the file.
	Describe func() (Description, error)
	// Hints are the sender's names for the file, the best first. Each is a name, a path or a
	// Content-Type. They are needed only for audio without a header.
	Hints []string
	// Own means that this deployment recorded the call. In this case, the quota and the upload rate
	// do not apply, because the audio is already stored and would otherwise be kept as a spool
	// forever.
	Own bool
	// Imported means that an operator's command imports the file. In this case, the upload rate,
	// which protects the server from senders, does not apply.
	Imported bool
}

// Ingest stores an upload and creates its recording. If the upload repeats an earlier upload,
// Ingest returns the earlier recording, and added is false. A file without audible audio is stored
// with the status [Absent]. If an upload is refused, interrupted or wrongly described, nothing
// remains of it.
func (r *Recordings) Ingest(ctx context.Context, u Upload) (kept Recording, added bool, err error) {
	terms, err := r.admit(ctx, u)
	if err != nil {
		return Recording{}, false, err
	}

	in := &ingestion{
		Recordings: r,
		upload:     u,
		terms:      terms,
		rec:        r.begin(u.ProjectID),
		settle:     func(int64) {},
	}
	err = r.c.Media.Put(in.rec.ID,
		func(f File) (map[string][]byte, error) { return in.write(ctx, f) },
		func() (bool, error) { return in.commit(ctx) },
	)
	if err != nil {
		in.settle(0)
		return Recording{}, false, err
	}
	if in.added {
		in.settle(in.rec.Bytes)
		return in.kept, true, nil
	}

	in.settle(0)
	if in.kept.SHA256 != in.rec.SHA256 {
		return Recording{}, false, problem.New(problem.Conflict, "conflict",
			"Idempotency-Key was used before for a different file: SHA-256 was %s, now %s",
			in.kept.SHA256, in.rec.SHA256)
	}
	return in.kept, false, nil
}

// An ingestion is an upload that is being stored.
type ingestion struct {
	*Recordings
	upload Upload
	terms  Terms
	rec    Recording

	// These fields are set by write.
	about       Description
	subscribers []string
	twin        Twin
	settle      func(added int64) // ends the reservation of the quota

	// These fields are set by commit.
	kept  Recording // the recording in the store, which may be an earlier one
	added bool      // kept is new
}

// write receives the file, and returns the parts to store with it.
func (in *ingestion) write(ctx context.Context, f File) (parts map[string][]byte, err error) {
	facts, err := in.receive(f, in.upload, &in.rec)
	if err != nil {
		return nil, err
	}
	in.about, err = in.describe(in.upload)
	if err != nil {
		return nil, err
	}
	in.subscribers, err = in.Recordings.subscribers(ctx, in.rec.ProjectID, in.about)
	if err != nil {
		return nil, err
	}

	measured := in.measure(f, facts, in.rec.SHA256)
	in.rec.Levels = measured.levels

	in.twin, err = in.findTwin(ctx, in.rec, f)
	if err != nil {
		return nil, err
	}
	if in.twin == (Twin{}) { // otherwise, no more bytes are stored
		in.settle, err = in.reserve(ctx, in.rec.ProjectID, in.terms.Quota, in.rec.Bytes)
		if err != nil {
			return nil, err
		}
	}
	return measured.parts, nil
}

// commit completes the recording and adds it to the store. It reports whether the received file
// belongs to the stored recording. commit runs after write, because the price depends on the
// duration.
func (in *ingestion) commit(ctx context.Context) (keep bool, err error) {
	rec := &in.rec
	rec.Status, rec.ErrorCode = statusOf(*rec)
	if rec.Status == Completed {
		rec.ErrorCode = in.about.ErrorCode
	}
	rec.Callback = in.about.Callback.withDefaults()
	rec.Metadata = in.about.Metadata.withDefaults()
	rec.Price = price(rec.Seconds(), in.terms.RecordRate)

	in.kept, in.added, err = in.c.Store.AddRecording(ctx, *rec, Arrival{
		Identity:      in.about.identity(rec.SHA256),
		SubscriberIDs: in.subscribers,
		Given:         in.about.Metadata,
		Sid:           in.about.Sid,
		Late:          in.about.Late,
		Twin:          in.twin,
	})
	if err != nil {
		return false, err
	}
	return in.added && in.kept.MediaKey == rec.MediaKey, nil
}

// begin returns a new recording of a project without its description.
func (r *Recordings) begin(projectID string) Recording {
	now := r.c.Now()
	id := uuid7.At(now)
	return Recording{
		ID:        id,
		MediaKey:  id,
		Sid:       uuid.NewString(),
		ProjectID: projectID,
		Created:   now,
		Updated:   now,
		Live:      Live{Trim: Trims[0]},
	}
}

// describe returns and checks the description of an upload.
func (r *Recordings) describe(u Upload) (Description, error) {
	d, err := u.Describe()
	if err != nil {
		return Description{}, err
	}
	d.Name = fileName(cmp.Or(d.Name, d.Path))
	if err := r.Check(d); err != nil {
		return Description{}, err
	}
	return d, nil
}

// receive copies an upload into f and hashes it. It stores the facts of the audio in rec.
func (r *Recordings) receive(f File, u Upload, rec *Recording) (wav.Facts, error) {
	hash := sha256.New()
	body := &source{body: u.Body, left: r.c.MaxUpload}
	buf := make([]byte, 64<<10) // small, because many uploads run at once
	size, err := io.CopyBuffer(io.MultiWriter(f, hash), body, buf)
	if err != nil {
		return wav.Facts{}, fmt.Errorf("receiving upload: %w", err)
	}
	facts, err := audio.Parse(f, size, u.Hints...)
	if err != nil {
		return wav.Facts{}, refuse(err, size)
	}

	rec.Bytes = size
	rec.SHA256 = hex.EncodeToString(hash.Sum(nil))
	rec.Codec = facts.Codec
	rec.SampleRate = facts.SampleRate
	rec.Channels = facts.Channels
	rec.Bits = facts.Bits
	rec.Frames = facts.Frames
	rec.Repairs = facts.Repairs
	return facts, nil
}

// statusOf returns the status of an upload. The status is Absent if the upload is silent, or has a
// header but no audio.
func statusOf(rec Recording) (status Status, errorCode string) {
	if rec.Frames == 0 || rec.Levels != nil && rec.Levels.Flags&levels.Silent != 0 {
		return Absent, NoAudio
	}
	return Completed, ""
}

// subscribers returns the subscribers that own a recording. They are named in the description, or
// otherwise are the subscribers with the addresses in the call's From and To.
func (r *Recordings) subscribers(ctx context.Context, projectID string, d Description) ([]string, error) {
	if d.SubscriberID != "" {
		known, err := r.c.Store.HasSubscriber(ctx, projectID, d.SubscriberID)
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, problem.BadParam("SubscriberId", "the project has no subscriber with this SubscriberId")
		}
		return []string{d.SubscriberID}, nil
	}
	if len(d.Subscribers) > 0 {
		return r.existing(ctx, projectID, d.Subscribers)
	}

	var found []string
	for _, address := range []string{d.From, d.To} {
		if address == "" {
			continue
		}
		id, err := r.c.SubscriberOf(ctx, projectID, address)
		if err != nil {
			return nil, err
		}
		if id != "" && !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	return found, nil
}

// existing returns the subscribers in ids that still exist. A recorder names them when a call
// begins, and they may be deleted during the call.
func (r *Recordings) existing(ctx context.Context, projectID string, ids []string) (known []string, err error) {
	for _, id := range ids {
		has, err := r.c.Store.HasSubscriber(ctx, projectID, id)
		if err != nil {
			return nil, err
		}
		if has && !slices.Contains(known, id) {
			known = append(known, id)
		}
	}
	return known, nil
}

// A source reads the body of an upload up to a limit. Its errors are problems that the sender
// caused, so that callers can tell them from disk errors.
type source struct {
	body io.Reader
	left int64
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.left -= int64(n)
	if s.left < 0 {
		return 0, problem.New(problem.TooLarge, "request_too_large", "the upload is larger than this server accepts")
	}
	if err == nil || errors.Is(err, io.EOF) || problem.First(err) != nil {
		return n, err
	}
	return n, problem.New(problem.Malformed, "bad_request", "the upload is incomplete")
}

// refuse converts the error of a rejected file to a problem.
func refuse(err error, size int64) error {
	switch {
	case size == 0:
		return problem.New(problem.Invalid, "invalid_parameter", "the upload is empty")
	case errors.Is(err, audio.ErrUnknown):
		return problem.New(problem.Unsupported, "unsupported_media_type", "the upload is %v", err)
	case errors.Is(err, wav.ErrCodec):
		return problem.New(problem.Unsupported, "unsupported_media_type", "the upload cannot be served: %v", err)
	case errors.Is(err, wav.ErrBroken):
		return problem.New(problem.Invalid, "invalid_parameter", "reading the upload failed: %v", err)
	}
	return fmt.Errorf("parsing upload: %w", err)
}
