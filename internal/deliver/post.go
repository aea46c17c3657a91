package deliver

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/problem"
)

// timeout is how long a request may take, from resolving the receiver's name to reading the
// response.
const timeout = 10 * time.Second

// maxAnswer is the maximum number of bytes read from a response. A connection is reused only if its
// response was read completely.
const maxAnswer = 16 << 10

// An answer is a receiver's response, or the reason for its absence.
type answer struct {
	status     int
	err        string // why there is no response; never quotes the receiver
	retryAfter time.Duration
}

// isDown reports whether the receiver seems unable to accept any body. A receiver that refused only
// this body is not down.
func (a answer) isDown() bool {
	return a.status == 0 || a.status >= 500 || a.status == http.StatusTooManyRequests ||
		a.status == http.StatusRequestTimeout
}

// post produces the body of a job and sends it.
func (v *visit) post(ctx context.Context, j Job) answer {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	m, err := v.write(ctx, j)
	if err != nil {
		v.d.c.Log.Error("writing a delivery", v.d.c.What, v.receiver.ID, "delivery", j.ID, "error", err)
		return answer{err: "the request could not be created"}
	}

	method, url := cmp.Or(m.Method, http.MethodPost), cmp.Or(m.URL, v.receiver.URL)
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(m.Body))
	if err != nil {
		return answer{err: "the URL is invalid"}
	}
	if m.Header != nil {
		req.Header = m.Header
	}
	req.Header.Set("User-Agent", v.d.c.Agent)

	resp, err := v.d.c.Client.Do(req)
	if err != nil {
		return answer{err: reason(err)}
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // read only so that the connection can be reused
	return answer{status: resp.StatusCode, retryAfter: retryAfter(resp.Header, v.d.now())}
}

// retryAfter parses a receiver's Retry-After (RFC 9110, section 10.2.3): seconds, or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if s, err := strconv.Atoi(text); err == nil && s >= 0 && s < 1<<30 {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// reason explains why there is no response.
func reason(err error) string {
	if problem.First(err) == nil && egress.IsTimeout(err) {
		return "no response within " + timeout.String()
	}
	return egress.Reason(err)
}
