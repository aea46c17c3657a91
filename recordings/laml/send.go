package laml

import (
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/selvage/selvage/recordings"
)

// sendContent sends content, or the ranges in the request. If reading fails before anything has been
// sent, sendContent returns an error. If reading fails later, it aborts the response, so that no
// client mistakes a part for the whole.
func sendContent(w http.ResponseWriter, r *http.Request, modified time.Time, content io.ReadSeeker) error {
	if _, ok := content.(*os.File); ok {
		http.ServeContent(w, r, "", modified, content) // the kernel sends it
		return nil
	}
	late := &lateHeader{ResponseWriter: w}
	watched := &watchedContent{ReadSeeker: content}
	http.ServeContent(late, r, "", modified, watched)

	err := watched.readError()
	if err == nil {
		late.send()
		return nil
	}
	if r.Context().Err() != nil {
		return nil // the client has disconnected
	}
	if late.sent {
		panic(http.ErrAbortHandler)
	}
	for _, name := range []string{
		"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Length",
		"Content-Range", "Content-Type", "Etag", "Last-Modified",
	} {
		w.Header().Del(name)
	}
	return err
}

// A watchedContent is content that remembers its last read error.
type watchedContent struct {
	io.ReadSeeker
	mu  sync.Mutex
	err error
}

// Read implements [io.Reader].
func (c *watchedContent) Read(p []byte) (int, error) {
	n, err := c.ReadSeeker.Read(p)
	if err != nil && err != io.EOF {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.err = err
	}
	return n, err
}

// readError returns the last read error, or nil.
func (c *watchedContent) readError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
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
	target, err := a.redirect(m.Recording.MediaKey, map[string]string{
		"Content-Type":        h.Get("Content-Type"),
		"Content-Disposition": h.Get("Content-Disposition"),
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"Content-Type", "Content-Disposition", "Etag"} {
		h.Del(name)
	}
	http.Redirect(w, r, target, http.StatusTemporaryRedirect)
	return nil
}
