package recordings_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/internal/revocation"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// A world is a Recordings with a real database and a real directory. It has one project, and a
// clock that only tests advance.
type world struct {
	*recordings.Recordings
	store   *store.Store
	media   string
	project string
	now     time.Time
}

func newWorld(t testing.TB, change ...func(*recordings.Config)) *world {
	t.Helper()
	w := &world{media: filepath.Join(t.TempDir(), "media"), now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	w.store = storetest.Open(t, storetest.Dir(t), nil)
	c := recordings.Config{Store: w.store, Media: storetest.Media(t, w.media), SubscriberOf: w.store.SubscriberOf,
		Now: func() time.Time { return w.now }}

	for _, f := range change {
		f(&c)
	}

	w.Recordings = recordings.New(c)
	w.project = w.addProject(t)
	return w
}

func (w *world) addProject(t testing.TB) string {
	t.Helper()
	return storetest.AddProject(t, w.store, w.now)
}

// addSubscriber creates a subscriber whose address is /private/ and the given name.
func (w *world) addSubscriber(t testing.TB, name string) string {
	t.Helper()
	return storetest.AddSubscriber(t, w.store, w.project, name, w.now)
}

// ingest uploads a file from the corpus.
func (w *world) ingest(t testing.TB, file string, d recordings.Description) (recordings.Recording, bool, error) {
	t.Helper()
	return w.upload(t.Context(), string(corpusFile(t, file)), d)
}

func (w *world) upload(
	ctx context.Context, bytes string, d recordings.Description,
) (recordings.Recording, bool, error) {
	return w.Ingest(ctx, recordings.Upload{ProjectID: w.project, Body: strings.NewReader(bytes), Describe: saying(d)})
}

func saying(d recordings.Description) func() (recordings.Description, error) {
	return func() (recordings.Description, error) { return d, nil }
}

// keys returns the keys of all stored media. The files of their parts are left out.
func (w *world) keys(t testing.TB) []string {
	t.Helper()
	return slices.DeleteFunc(w.mediaFiles(t), func(name string) bool { return strings.Contains(name, ".") })
}

// mediaFiles returns the names of all files in the media directory.
func (w *world) mediaFiles(t testing.TB) (found []string) {
	t.Helper()
	err := filepath.WalkDir(w.media, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			found = append(found, e.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func corpusFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A verdict is the expected result for a file in the corpus.
type verdict struct {
	Result     string  `json:"result"`
	Absent     bool    `json:"may_accept_absent"`
	Silent     bool    `json:"silent"`
	Headerless bool    `json:"headerless"`
	Codec      string  `json:"codec"`
	Duration   float64 `json:"duration_s"`
	Tolerance  float64 `json:"tolerance_s"`
	SHA256     string  `json:"sha256"`
}

func verdicts(t testing.TB) map[string]verdict {
	t.Helper()
	var doc struct {
		Files map[string]verdict `json:"files"`
	}
	if err := json.Unmarshal(corpusFile(t, "expected.json"), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Files
}

func (w *world) deleteProject(t testing.TB) error {
	t.Helper()
	return w.store.DeleteProject(t.Context(), revocation.Revocation{Kind: revocation.Project, ID: w.project})
}
