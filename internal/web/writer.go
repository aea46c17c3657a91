package web

import (
	"io"
	"net/http"
)

// recorder notes the status and size of an answer. It forwards ReadFrom, so
// that http.ServeContent can still hand a file to the kernel (sendfile).
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 ||
		status == http.StatusSwitchingProtocols) { // the others come before the answer
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
		// With the header gone, nothing is read to find out which type the content has.
		_ = http.NewResponseController(w.ResponseWriter).Flush() // one that cannot does without
	}
	n, err := io.Copy(w.ResponseWriter, src) // uses the inner ReadFrom where there is one
	w.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController find the real writer.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
