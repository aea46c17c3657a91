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

// TestSoundWithLyingTag shows that an MP3 of five minutes is refused even if its tag claims that it
// has one frame. How much memory a sound uses depends on its real length.
func TestSoundWithLyingTag(t *testing.T) {
	frames := int(5 * time.Minute / mp3test.FrameLength)
	_, err := decode(mp3test.Lying(frames))
	if err == nil || !strings.Contains(err.Error(), "longer than 2m0s") {
		t.Errorf("decode = %v, want an error that contains %q", err, "longer than 2m0s")
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

	_, _, err = w.Sound(t.Context(), "p", "/tone.wav")
	if err == nil || !strings.Contains(err.Error(), "410") {
		t.Errorf("a sound at the webhook's own port: %v, want an error with its status 410", err)
	}
	if _, _, err := w.Sound(t.Context(), "p", other.URL+"/tone.wav"); err == nil {
		t.Error("a sound at a different port is accepted, want an error")
	}
	if reached.Load() {
		t.Error("a different port of the webhook's host got a request, want none")
	}
}

// TestSoundsAreLimited shows that a project cannot use up the sounds of other projects, and that
// all projects together are limited.
func TestSoundsAreLimited(t *testing.T) {
	var count soundCount
	var releases []func()
	for i := range maxSounds {
		if i >= maxProjectSounds {
			if _, err := count.take("project 0"); err == nil {
				t.Fatal("project 0 took more sounds than its limit, want an error")
			}
		}
		release, err := count.take(fmt.Sprint("project ", i/maxProjectSounds))
		if err != nil {
			t.Fatalf("sound %d: %v", i+1, err)
		}
		releases = append(releases, release)
	}

	if _, err := count.take("one more project"); err == nil {
		t.Errorf("all projects together took %d sounds, want an error because of their limit", maxSounds+1)
	}

	releases[0]()
	if _, err := count.take("one more project"); err != nil {
		t.Errorf("a sound after a release: %v, want no error", err)
	}
	count.release("one more project")
	for _, release := range releases[1:] {
		release()
	}
	if count.all != 0 {
		t.Errorf("after all sounds were released, %d are counted, want none", count.all)
	}
	if len(count.of) != 0 {
		t.Errorf("after all sounds were released, the projects have %v, want none", count.of)
	}
}
