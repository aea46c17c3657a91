package laml

import (
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/selvage/selvage/recordings"
)

// sendContent sends content, or the ranges in the request. If the content cannot be read before
// anything has been sent, sendContent returns an error. Afterwards, it aborts the response, so that
// no client mistakes a part for the whole.
func sendContent(w http.ResponseWriter, r *http.Request, modified time.Time, content io.ReadSeeker) error {
	if _, ok := content.(*os.File); ok {
		http.ServeContent(w, r, "", modified, content) // the kernel sends it
		return nil
	}
	late := &lateHeader{ResponseWriter: w}
	noted := &noted{ReadSeeker: content}
	http.ServeContent(late, r, "", modified, noted)

	err := noted.failure()
	switch {
	case err == nil:
		late.send()
		return nil
	case r.Context().Err() != nil:
		return nil // the client has disconnected
	case late.sent:
		panic(http.ErrAbortHandler)
	}

	for _, name := range []string{"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Length",
		"Content-Range", "Content-Type", "Etag", "Last-Modified"} {
		w.Header().Del(name)
	}
	return err
}

// A noted is content that remembers its first read error.
type noted struct {
	io.ReadSeeker
	mu  sync.Mutex
	err error
}

// Read implements [io.Reader].
func (n *noted) Read(p []byte) (int, error) {
	read, err := n.ReadSeeker.Read(p)
	if err != nil && err != io.EOF {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.err = err
	}
	return read, err
}

func (n *noted) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// A lateHeader sends the header with the first bytes of the body.
type lateHeader struct {
	http.ResponseWriter
	status int
	sent   bool
}

// WriteHeader implements [http.ResponseWriter].
func (l *lateHeader) WriteHeader(status int) { l.status = status }

// Write implements [http.ResponseWriter].
func (l *lateHeader) Write(p []byte) (int, error) {
	l.send()
	return l.ResponseWriter.Write(p)
}

// Unwrap returns the writer for [http.ResponseController].
func (l *lateHeader) Unwrap() http.ResponseWriter { return l.ResponseWriter }

func (l *lateHeader) send() {
	if !l.sent && l.status != 0 {
		l.ResponseWriter.WriteHeader(l.status)
	}
	l.sent = true
}

// redirectTo lets the client read a whole file from the object store.
func (a *API) redirectTo(w http.ResponseWriter, r *http.Request, m *recordings.Rendition) error {
	h := w.Header()
	to, err := a.redirect(m.Recording.MediaKey, map[string]string{
		"Content-Type": h.Get("Content-Type"), "Content-Disposition": h.Get("Content-Disposition"),
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"Content-Type", "Content-Disposition", "Etag"} {
		h.Del(name)
	}
	http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	return nil
}
