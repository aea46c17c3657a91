package recordings

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings/wav"
)

// An Upload is a file on its way in.
type Upload struct {
	ProjectID string
	Body      io.Reader
	// Describe is asked once the Body is read to its end, since a form may go on
	// after its file.
	Describe func() (Description, error)
}

// Ingest stores an upload and makes its recording, or finds the one that it
// repeats; then added is false. A file that holds no audio is kept as [Absent]. A
// file that cannot be served, an upload that breaks off and a wrong description
// leave nothing behind.
func (r *Recordings) Ingest(ctx context.Context, u Upload) (kept Recording, added bool, err error) {
	rate, err := r.store.RecordRate(ctx, u.ProjectID)
	if err != nil {
		return Recording{}, false, err
	}
	rec, err := r.begin(u.ProjectID)
	if err != nil {
		return Recording{}, false, err
	}
	var about Description
	var subscribers []string
	write := func(f *os.File) (err error) {
		if err := r.receive(f, u.Body, &rec); err != nil {
			return err
		}
		if about, err = r.describe(u); err != nil {
			return err
		}
		subscribers, err = r.subscribers(ctx, u.ProjectID, about)
		return err
	}
	commit := func() (_ bool, err error) {
		rec.Metadata, rec.Price = about.Metadata.withDefaults(), price(rec.Seconds(), rate)
		kept, added, err = r.store.AddRecording(ctx, rec, about.identity(rec.SHA256), subscribers)
		return added, err
	}
	if err := r.media.Put(rec.ID, write, commit); err != nil {
		return Recording{}, false, err
	}
	if !added && kept.SHA256 != rec.SHA256 {
		return Recording{}, false, problem.New(problem.Conflict, "conflict",
			"Idempotency-Key was used before for other bytes: then SHA-256 %s, now %s", kept.SHA256, rec.SHA256)
	}
	return kept, added, nil
}

func (r *Recordings) begin(projectID string) (Recording, error) {
	now := r.now()
	id, err := newID(now)
	if err != nil {
		return Recording{}, err
	}
	sid, err := uuid.NewRandom()
	if err != nil {
		return Recording{}, fmt.Errorf("making a sid: %w", err)
	}
	return Recording{ID: id, Sid: sid.String(), ProjectID: projectID, Created: now, Updated: now}, nil
}

// describe asks for the description and checks it.
func (r *Recordings) describe(u Upload) (Description, error) {
	d, err := u.Describe()
	if err != nil {
		return Description{}, err
	}
	return d, r.Check(d)
}

// receive copies an upload into f, while hashing it, and notes its facts.
func (r *Recordings) receive(f *os.File, body io.Reader, rec *Recording) error {
	hash := sha256.New()
	size, err := io.CopyBuffer(io.MultiWriter(f, hash), &source{body: body, left: r.maxUpload}, make([]byte, 256<<10))
	if err != nil {
		return fmt.Errorf("receiving upload: %w", err)
	}
	facts, err := wav.Parse(f, size)
	if err != nil {
		return refuse(err, f, size)
	}
	rec.Bytes, rec.SHA256 = size, hex.EncodeToString(hash.Sum(nil))
	rec.Codec, rec.SampleRate, rec.Channels, rec.Bits = facts.Codec, facts.SampleRate, facts.Channels, facts.Bits
	rec.Frames, rec.Repairs, rec.Status = facts.Frames, facts.Repairs, Completed
	if facts.Frames == 0 {
		rec.Status, rec.ErrorCode = Absent, NoAudio
	}
	return nil
}

// subscribers gives whom a recording is tied to: the one the sender says, else
// those whose addresses the call went from and to.
func (r *Recordings) subscribers(ctx context.Context, projectID string, d Description) ([]string, error) {
	if d.SubscriberID != "" {
		known, err := r.store.HasSubscriber(ctx, projectID, d.SubscriberID)
		if err == nil && !known {
			err = problem.BadParam("SubscriberId", "the project has no subscriber with this SubscriberId")
		}
		return []string{d.SubscriberID}, err
	}
	var found []string
	for _, address := range []string{d.From, d.To} {
		if address == "" {
			continue
		}
		id, err := r.subscriberOf(ctx, projectID, address)
		if err != nil {
			return nil, err
		}
		if id != "" && !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	return found, nil
}

// A source is the body of an upload, up to a limit. Its errors say that it was
// the sender's side which failed, not the disk.
type source struct {
	body io.Reader
	left int64
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if s.left -= int64(n); s.left < 0 {
		return 0, problem.New(problem.TooLarge, "request_too_large", "the upload is larger than this server takes")
	}
	if err == nil || errors.Is(err, io.EOF) || problem.First(err) != nil {
		return n, err
	}
	return n, problem.New(problem.Malformed, "bad_request", "the upload broke off")
}

// refuse turns the reason why a file cannot be served into a problem.
func refuse(err error, f io.ReaderAt, size int64) error {
	if size == 0 {
		return problem.New(problem.Invalid, "invalid_parameter", "the upload is empty")
	}
	switch {
	case errors.Is(err, wav.ErrNotWAV):
		return problem.New(problem.Unsupported, "unsupported_media_type", "the upload is not a WAV file (RIFF, RF64 or RIFX)%s", looksLike(f))
	case errors.Is(err, wav.ErrCodec):
		return problem.New(problem.Unsupported, "unsupported_media_type", "the WAV file cannot be served: %v", err)
	case errors.Is(err, wav.ErrBroken):
		return problem.New(problem.Invalid, "invalid_parameter", "the WAV file cannot be read: %v", err)
	}
	return fmt.Errorf("parsing upload: %w", err)
}

// looksLike names the formats that are often sent instead.
func looksLike(f io.ReaderAt) string {
	var head [4]byte
	_, _ = f.ReadAt(head[:], 0) // a short file leaves zeros
	switch {
	case string(head[:]) == "OggS":
		return "; it looks like Ogg"
	case string(head[:]) == "fLaC":
		return "; it looks like FLAC"
	case string(head[:3]) == "ID3", head[0] == 0xFF && head[1]&0xE0 == 0xE0:
		return "; it looks like MP3"
	}
	return ""
}
