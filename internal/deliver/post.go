package deliver

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/selvage/selvage/internal/egress"
	"github.com/selvage/selvage/internal/problem"
)

// timeout is how long a request may take, from resolving the receiver's name to reading the
// response.
const timeout = 10 * time.Second

// maxAnswer is the maximum number of bytes read from a response. A connection is reused only if its
// response was read completely.
const maxAnswer = 16 << 10

// maxKept is the maximum number of bytes of a response's body that are kept.
const maxKept = 2 << 10

// An answer is a receiver's response, or the reason for its absence.
type answer struct {
	status     int
	err        string // why there is no response; never quotes the receiver
	refused    string // the address that the client refused, or ""
	body       string // the beginning of the response's body
	took       time.Duration
	retryAfter time.Duration
}

// isDown reports whether the receiver seems unable to accept any body. A receiver that refused only
// this body is not down.
func (a answer) isDown() bool {
	return a.status == 0 || a.status >= 500 || a.status == http.StatusTooManyRequests ||
		a.status == http.StatusRequestTimeout
}

// post creates the body of a job and sends it.
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

	began := time.Now()
	a := v.exchange(req)
	a.took = time.Since(began)
	return a
}

// exchange sends a request and reads the response.
func (v *visit) exchange(req *http.Request) answer {
	resp, err := v.d.c.Client.Do(req)
	if err != nil {
		return answer{err: reason(err), refused: egress.Refused(err)}
	}
	defer resp.Body.Close()
	return answer{
		status:     resp.StatusCode,
		body:       readBeginning(resp),
		retryAfter: retryAfter(resp.Header, v.d.now()),
	}
}

// readBeginning reads a response and returns the beginning of its body. It returns "" for a
// redirect, whose body does not come from the page to which the redirect leads.
func readBeginning(resp *http.Response) string {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxKept))
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer-maxKept) // read only so that the connection can be reused
	if resp.StatusCode/100 == 3 {
		return ""
	}
	return plain(body)
}

// plain returns body without invalid UTF-8, and without control and format characters other than
// line breaks and tabs. Format characters include those that reverse the direction of text.
func plain(body []byte) string {
	text := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(body), ""))
	return strings.TrimSpace(text)
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
