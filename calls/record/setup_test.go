package record

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/wav"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// openSpools opens spools in a new directory.
func openSpools(t testing.TB, r *recordings.Recordings) *Spools {
	t.Helper()
	s, err := Open(Config{Dir: t.TempDir(), Recordings: r, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A world has spools, and a real database and directory that receive the recordings.
type world struct {
	*Spools
	store   *store.Store
	media   string
	project string
	ahead   time.Duration // how far the recordings' clock is ahead
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{media: filepath.Join(t.TempDir(), "media"), store: storetest.Open(t, storetest.Dir(t), nil)}
	w.project = storetest.AddProject(t, w.store, time.Now())
	w.Spools = openSpools(t, recordings.New(recordings.Config{
		Store:        w.store,
		Media:        storetest.Media(t, w.media),
		SubscriberOf: w.store.SubscriberOf,
		Now:          func() time.Time { return time.Now().Add(w.ahead) },
	}))
	return w
}

// call returns a call that began the given time ago.
func (w *world) call(ago time.Duration) calls.RecordedCall {
	return calls.RecordedCall{
		Project:   w.project,
		CallID:    "c",
		From:      "/private/alice",
		To:        "/private/bob",
		Direction: "inbound",
		Started:   time.Now().Add(-ago),
	}
}

// start starts a recording.
func (w *world) start(t testing.TB, c calls.RecordedCall) *spool {
	t.Helper()
	r, err := w.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r.(*spool)
}

// find returns a recording.
func (w *world) find(t testing.TB, sid string) recordings.Recording {
	t.Helper()
	rec, err := w.recordings.Find(t.Context(), recordings.Owner{ProjectID: w.project}, sid)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// all returns all recordings of the project.
func (w *world) all(t testing.TB) []recordings.Recording {
	t.Helper()
	f := recordings.Filter{Owner: recordings.Owner{ProjectID: w.project}}
	listed, err := w.recordings.List(t.Context(), f, page.Query{Size: 50})
	if err != nil {
		t.Fatal(err)
	}
	return listed.Items
}

// wantRecordings ends the test unless the project has the given number of recordings.
func (w *world) wantRecordings(t testing.TB, want int) {
	t.Helper()
	if got := len(w.all(t)); got != want {
		t.Fatalf("the project has %d recordings, want %d", got, want)
	}
}

// wantSpools ends the test unless the directory of spools has the given number of files.
func (w *world) wantSpools(t testing.TB, want int) {
	t.Helper()
	if files := w.spoolFiles(t); len(files) != want {
		t.Fatalf("the files in the directory of spools are %q, want %d", files, want)
	}
}

// recover renders all spools as the next process would.
func (w *world) recover(t testing.TB) {
	t.Helper()
	if err := w.enqueueUnlocked(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.renders.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// spoolFiles returns the names of the files in the directory of spools.
func (w *world) spoolFiles(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(w.dir.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// samples returns the audio of a recording, interleaved.
func (w *world) samples(t testing.TB, sid string) []int16 {
	t.Helper()
	rec, media, err := w.recordings.Open(t.Context(), recordings.Owner{ProjectID: w.project}, sid)
	if err != nil {
		t.Fatal(err)
	}
	defer media.Close()

	b, err := io.ReadAll(media)
	if err != nil {
		t.Fatal(err)
	}

	facts, err := wav.Parse(bytes.NewReader(b), rec.Bytes)
	if err != nil {
		t.Fatal(err)
	}

	source, err := wav.Open(bytes.NewReader(b), facts, nil)
	if err != nil {
		t.Fatal(err)
	}

	all := make([]int16, source.Frames()*int64(source.Channels()))
	if _, err := source.ReadFrames(all, 0); err != nil && len(all) > 0 {
		t.Fatal(err)
	}
	return all
}

// interrupted starts a recording and simulates the death of the process after the given number of
// packets, in the middle of writing an entry. The lock on the spool is released.
func (w *world) interrupted(t testing.TB, c calls.RecordedCall, packets int) (sid string) {
	t.Helper()
	sid, err := w.announce(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	c.Sid = sid
	p := newSpool(w.Spools, c)
	if err := p.create(); err != nil {
		t.Fatal(err)
	}

	speak(p, 0, packets)
	if !p.write() {
		t.Fatal("the spool was not written")
	}

	if _, err := p.file.WriteAt([]byte("torn"), p.offset); err != nil {
		t.Fatal(err)
	}
	if err := p.file.Close(); err != nil {
		t.Fatal(err)
	}
	return sid
}

// speak passes G.711 packets with sound to both taps. Each side has a square wave of its own
// frequency.
func speak(p *spool, from, to int) {
	for i := from; i < to; i++ {
		for side := range p.taps {
			half := 5 + 5*side
			wave := strings.Repeat("\x20", half) + strings.Repeat("\xa0", half)
			packet := audio(p, i)
			packet.Payload = []byte(strings.Repeat(wave, 160/len(wave)))
			p.Tap(calls.Side(side)).Packet(packet)
		}
	}
}

// reopenRecordings opens the recordings of a world again, as the next process would.
func reopenRecordings(t testing.TB, w *world) *recordings.Recordings {
	t.Helper()
	return recordings.New(recordings.Config{Store: w.store, Media: storetest.Media(t, w.media)})
}

// newTestSpool returns a spool with a file to which only the test writes.
func newTestSpool(t testing.TB) *spool {
	t.Helper()
	p := newSpool(openSpools(t, nil), calls.RecordedCall{
		Sid:         "12345678-sid",
		Project:     "p",
		CallID:      "c",
		From:        "/private/alice",
		Subscribers: []string{"a"},
		Started:     time.Now(),
	})
	if err := p.create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.file.Close() })
	return p
}

// audio returns the i-th audio packet.
func audio(p *spool, i int) calls.Packet {
	return calls.Packet{
		Kind:    calls.Audio,
		Codec:   "PCMU",
		SSRC:    7,
		Seq:     uint16(i),
		Time:    uint32(i * 160),
		Arrived: p.call.Started.Add(time.Duration(i) * 20 * time.Millisecond),
		Payload: bytes.Repeat([]byte{byte(i | 1)}, 20),
	}
}

// readAll returns the entries of a spool after its header. Their payloads are copies.
func readAll(file io.ReaderAt) (entries []entry, err error) {
	r, _, err := openReader(file)
	if err != nil {
		return nil, err
	}

	for {
		e, err := r.next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		e.payload = bytes.Clone(e.payload)
		entries = append(entries, e)
	}
}
