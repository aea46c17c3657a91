package web

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rs/cors"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
)

// RequestID returns the id of the request to which ctx belongs, or "". The id is in every log line
// about the request and in the response header X-Request-Id.
func RequestID(ctx context.Context) string {
	return audit.From(ctx).RequestID
}

// An Observer is called after each response. route is the registered pattern that matched the
// request, so that it can be a metric's label.
type Observer func(route string, status int, took time.Duration)

// Outer is the outermost middleware of a listener. It assigns request ids, recovers from panics,
// and refuses the methods TRACE and CONNECT. It logs each request: at level error if the status is 5xx, at
// level info if an API refused the request (see [Refuse]) or the client disconnected before the response,
// and otherwise at level debug. Errors that are part of normal operation, and refusals beyond a limited
// rate, are logged at level debug, too.
func Outer(next http.Handler, log *slog.Logger, observe Observer) http.Handler {
	requests := newRequestLog(log)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		r, v := withVisit(r)

		rec := &recorder{ResponseWriter: w}
		rec.Header().Set("X-Request-Id", v.origin.RequestID)

		defer func() {
			if cause := recover(); cause != nil {
				handlePanic(rec, r, log, cause)
			}
			took := time.Since(began)
			if rec.status >= 500 && HasClientLeft(r.Context(), v.refusal) {
				rec.status, v.refusal = statusClientLeft, errClientLeft
			}
			if observe != nil {
				observe(r.Pattern, rec.status, took)
			}
			requests.write(r, rec, v, took)
		}()

		if refuseMethod(rec, r) {
			return
		}
		next.ServeHTTP(rec, r)
	})
}

// newID returns a random request id of 100 bits. The id is not a secret, so newID does not use the
// operating system's source of randomness.
func newID() string {
	const letters, half = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 10
	var id [2 * half]byte
	a, b := rand.Uint64(), rand.Uint64()
	for i := range half {
		id[i], id[half+i] = letters[a%32], letters[b%32]
		a, b = a/32, b/32
	}
	return string(id[:])
}

// userAgent returns the User-Agent header, shortened to 256 bytes.
func userAgent(r *http.Request) string {
	agent := r.UserAgent()
	return strings.ToValidUTF8(agent[:min(len(agent), 256)], "")
}

func refuseMethod(w http.ResponseWriter, r *http.Request) bool {
	// A request with both Content-Length and Transfer-Encoding may hide a second request (RFC 9112,
	// section 6.3). Therefore close the connection after the response.
	if len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}

	if r.Method == http.MethodTrace || r.Method == http.MethodConnect {
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return true
	}
	return false
}

func handlePanic(w *recorder, r *http.Request, log *slog.Logger, cause any) {
	if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(cause)
	}
	log.ErrorContext(r.Context(), "panic",
		"request_id", RequestID(r.Context()), "cause", cause, "stack", string(debug.Stack()))
	if w.status == 0 {
		http.Error(w, `{"error":"Internal Server Error"}`, http.StatusInternalServerError)
	}
}

// LogInternal logs what clients must not see: the cause of an internal error, or why a service is
// unavailable.
func LogInternal(r *http.Request, log *slog.Logger, err error) {
	message := "internal error"
	switch first := problem.First(err); {
	case HasClientLeft(r.Context(), err):
		Refuse(r.Context(), err) // Outer logs it
		return
	case error(first) == err:
		return // the client gets the complete error
	case first != nil && first.Kind == problem.Unavailable:
		message = "unavailable"
	}
	log.ErrorContext(r.Context(), message, "request_id", RequestID(r.Context()), "route", r.Pattern, "error", err)
}

// LogPage logs that a user saw an error page with a request id, so that support can look up the id
// that the user reports. cause is a reason that the page does not show, or "".
func LogPage(r *http.Request, log *slog.Logger, status int, title, cause string) {
	attrs := []any{"request_id", RequestID(r.Context()), "route", r.Pattern, "status", status, "title", title}
	if cause != "" {
		attrs = append(attrs, "cause", cause)
	}
	log.InfoContext(r.Context(), "error page", attrs...)
}

// AnyOrigin allows scripts from every origin to call next, without cookies. It is for endpoints
// to which clients send their credentials in another way than in cookies.
func AnyOrigin(next http.Handler, methods ...string) http.Handler {
	return cors.New(cors.Options{
		AllowedOrigins: []string{"*"},
		AllowedMethods: methods,
		AllowedHeaders: []string{
			"Authorization", "Content-Type", "Accept", "DPoP", "Range", "If-Range", "Idempotency-Key",
		},
		ExposedHeaders: []string{
			"WWW-Authenticate", "DPoP-Nonce", "X-Request-Id", "Retry-After", "Accept-Ranges",
			"Content-Range", "Content-Length", "ETag", "Content-Disposition",
		},
		MaxAge: 600,
	}).Handler(next)
}
