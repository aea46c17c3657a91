package web

import (
	"io"
	"net/http"
)

// recorder records the status and size of a response. It implements ReadFrom, so that
// http.ServeContent can still hand a file to the kernel (sendfile).
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
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
		// With the header written, io.Copy does not read ahead to detect the content type.
		_ = http.NewResponseController(w.ResponseWriter).Flush() // optional: not every writer can flush
	}
	n, err := io.Copy(w.ResponseWriter, src) // uses the inner writer's ReadFrom if it has one
	w.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController find the underlying writer.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
