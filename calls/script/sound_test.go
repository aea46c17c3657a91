package script

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage/selvage/recordings/mp3/mp3test"
)

// TestSoundWithLyingTag shows that five minutes of MP3 are refused even if their tag claims that
// they have one frame. The memory of a sound depends on its real length.
func TestSoundWithLyingTag(t *testing.T) {
	sound, err := decode(mp3test.Lying(int(5 * time.Minute / mp3test.FrameLength)))
	if err == nil || !strings.Contains(err.Error(), "longer than 2m0s") {
		t.Errorf("decode = %d samples, %v, want an error that the sound is too long", len(sound), err)
	}
}

// TestSoundFromOtherPort shows that the webhook's host is trusted only at the port of the webhook.
// A script must not reach the other services of a private host.
func TestSoundFromOtherPort(t *testing.T) {
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "gone", http.StatusGone)
	}))
	defer own.Close()
	w, err := New(Config{URL: own.URL + "/calls", Secret: "a secret for scripts"})
	if err != nil {
		t.Fatal(err)
	}

	if _, _, err := w.Sound(t.Context(), "p", "/tone.wav"); err == nil || !strings.Contains(err.Error(), "410") {
		t.Errorf("a sound at the webhook's own port: %v, want its status 410", err)
	}
	if _, _, err := w.Sound(t.Context(), "p", other.URL+"/tone.wav"); err == nil || reached.Load() {
		t.Errorf("a sound at another port: %v, reached: %v, want an error and no request", err, reached.Load())
	}
}

// TestSoundsAreLimited shows that a project cannot use up the sounds of other projects, and that
// all projects together are limited.
func TestSoundsAreLimited(t *testing.T) {
	var c soundCount
	var releases []func()
	for i := range maxSounds {
		release, err := c.take(fmt.Sprint("project ", i/maxProjectSounds))
		if err != nil {
			t.Fatalf("sound %d: %v", i, err)
		}
		releases = append(releases, release)
		if _, err := c.take("project 0"); i >= maxProjectSounds-1 && err == nil {
			t.Fatal("a project has more sounds than its limit")
		} else if err == nil {
			c.release("project 0")
		}
	}

	if _, err := c.take("another"); err == nil {
		t.Error("all projects together have more sounds than the limit")
	}

	releases[0]()
	if _, err := c.take("another"); err != nil {
		t.Errorf("a sound after a release: %v, want no error", err)
	}
	c.release("another")
	for _, release := range releases[1:] {
		release()
	}
	if c.all != 0 || len(c.of) != 0 {
		t.Errorf("%d sounds of %v remain after all were released", c.all, c.of)
	}
}
