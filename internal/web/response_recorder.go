package web

import (
	"io"
	"net/http"
)

// A recorder records the status and size of a response. It implements ReadFrom, so that
// http.ServeContent can still let the kernel send a file (sendfile).
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// Status returns the status that was written to w, the writer that [Outer] passes to its handler. It
// is 0 if nothing was written.
func Status(w http.ResponseWriter) int {
	if rec, ok := w.(*recorder); ok {
		return rec.status
	}
	return 0
}

func (w *recorder) WriteHeader(status int) {
	// 1xx statuses, except 101, precede the final response.
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

func (w *recorder) ReadFrom(src io.Reader) (int64, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.Header().Get("Content-Length") != "" {
		// After the header has been written, io.Copy does not need to read ahead to detect the
		// content type.
		_ = http.NewResponseController(w.ResponseWriter).Flush() // optional: some writers cannot flush
	}
	n, err := io.Copy(w.ResponseWriter, src) // uses ReadFrom of the wrapped writer if it has one
	w.bytes += n
	return n, err
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
