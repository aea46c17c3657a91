package laml

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// A Source is another LaML service from which recordings are copied.
type Source struct {
	Base      string // such as https://example.signalwire.com
	AccountID string
	Token     string
}

// sourceClient limits the wait for a response, but not the time for reading media.
var sourceClient = &http.Client{
	Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		ResponseHeaderTimeout: time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
	},
}

// A SourceRecording is a recording in a Source.
type SourceRecording struct {
	Sid    string
	Status recordings.Status
	recordings.Metadata
	path string // path of the account
}

// A sourceDocument contains the members of a recording's document that are copied. Services use
// different types for the other members.
type sourceDocument struct {
	Sid           string            `json:"sid"`
	CallSid       string            `json:"call_sid"`
	ConferenceSid string            `json:"conference_sid"`
	StartTime     string            `json:"start_time"`
	Source        string            `json:"source"`
	Track         string            `json:"track"`
	Status        recordings.Status `json:"status"`
	Media         struct {
		From      string `json:"from"`
		To        string `json:"to"`
		Direction string `json:"direction"`
		Track     string `json:"track"`
	} `json:"media"`
}

// Recordings returns an iterator over all recordings in the source, newest first.
func (s Source) Recordings(ctx context.Context) func(yield func(SourceRecording, error) bool) {
	return func(yield func(SourceRecording, error) bool) {
		account := s.account()
		next := account + "/Recordings.json?PageSize=100"
		seen := map[string]bool{next: true} // a cycle of pages would never end
		for next != "" {
			var page struct {
				Recordings  []sourceDocument `json:"recordings"`
				NextPageURI string           `json:"next_page_uri"`
			}
			if err := s.read(ctx, next, &page); err != nil {
				yield(SourceRecording{}, err)
				return
			}

			for _, doc := range page.Recordings {
				if !yield(doc.recording(account), nil) {
					return
				}
			}

			if seen[page.NextPageURI] {
				yield(SourceRecording{},
					fmt.Errorf("reading %s: its next page %s was read before", next, page.NextPageURI))
				return
			}
			next = page.NextPageURI
			seen[next] = next != ""
		}
	}
}

// account returns the path of the account. If Base has no path, the prefix depends on the service.
func (s Source) account() string {
	path := clientPrefix
	if u, err := url.Parse(s.Base); err == nil && u.Path != "" && u.Path != "/" {
		path = strings.TrimSuffix(u.Path, "/")
	} else if !strings.Contains(s.Base, "twilio.com") {
		path = prefix
	}
	return path + "/Accounts/" + s.AccountID
}

// recording converts a document. It omits values that are not allowed here.
func (d sourceDocument) recording(account string) SourceRecording {
	r := SourceRecording{Sid: d.Sid, Status: d.Status, path: account}
	r.ConferenceSid = d.ConferenceSid
	if r.ConferenceSid == "" { // some services set both
		r.CallSid = d.CallSid
	}
	r.From = d.Media.From
	r.To = d.Media.To
	r.Direction = member(d.Media.Direction, recordings.Directions)
	r.Source = member(d.Source, recordings.Sources)
	r.Track = member(d.Media.Track+d.Track, recordings.Tracks)
	if start, ok := parseDate(d.StartTime); ok {
		r.StartTime = start
	}
	return r
}

// member returns the allowed value that equals text, ignoring case, or "" if text is not allowed.
func member(text string, allowed []string) string {
	for _, value := range allowed {
		if strings.EqualFold(value, text) {
			return value
		}
	}
	return ""
}

// URL returns the URL of a recording's media, which is also the name of the recording.
func (s Source) URL(r SourceRecording) string {
	return s.origin() + r.path + "/Recordings/" + url.PathEscape(r.Sid) + ".wav"
}

// origin returns the scheme and host of the source.
func (s Source) origin() string {
	u, err := url.Parse(s.Base)
	if err != nil {
		return s.Base
	}
	return u.Scheme + "://" + u.Host
}

// SourceMedia is the media of a recording in a Source.
type SourceMedia struct {
	io.ReadCloser        // if the media is cut short, reading it returns an error
	Type          string // Content-Type
	Size          int64  // -1 if unknown
}

// Open returns the media of a recording. The parameter Original requests the uploaded file from
// selvage. Other services ignore it. If a service rejects the parameter, or the file has neither a
// header nor a type, Open requests the media as WAV.
func (s Source) Open(ctx context.Context, r SourceRecording) (SourceMedia, error) {
	res, err := s.getOriginal(ctx, r)
	if errors.Is(err, errNoOriginal) {
		res, err = s.get(ctx, s.URL(r))
	}
	if err != nil {
		return SourceMedia{}, err
	}
	return SourceMedia{
		ReadCloser: res.Body,
		Type:       res.Header.Get("Content-Type"),
		Size:       res.ContentLength,
	}, nil
}

// errNoOriginal is the error for an original that is missing, or whose format is unknown.
var errNoOriginal = errors.New("no usable original")

// getOriginal requests the uploaded file of a recording.
func (s Source) getOriginal(ctx context.Context, r SourceRecording) (*http.Response, error) {
	res, err := s.get(ctx, s.URL(r)+"?"+original+"=true")
	var refused *refusal
	if errors.As(err, &refused) && refused.status == http.StatusBadRequest {
		return nil, errNoOriginal
	}
	if err != nil {
		return nil, err
	}
	if res.Header.Get("Content-Type") == "application/octet-stream" {
		_ = res.Body.Close()
		return nil, errNoOriginal
	}
	return res, nil
}

// read decodes the page at path. path is relative to the origin, like the links between pages.
func (s Source) read(ctx context.Context, path string, to any) error {
	if !strings.HasPrefix(path, "/") { // the link could lead to another host
		return fmt.Errorf("reading the list of recordings: the link %q is not a path", path)
	}
	res, err := s.get(ctx, s.origin()+path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(io.LimitReader(res.Body, 64<<20)).Decode(to); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// busyWaits are the waits before a request is repeated, unless a busy source asks for a longer wait.
// Together they last more than a minute, because many services limit the requests per minute.
var busyWaits = []time.Duration{
	time.Second,
	2 * time.Second,
	5 * time.Second,
	10 * time.Second,
	20 * time.Second,
	30 * time.Second,
}

// longestBusyWait limits the wait that a source may ask for.
const longestBusyWait = 2 * time.Minute

// A refusal is the error for a response with a status other than 200.
type refusal struct {
	address    string
	status     int
	retryAfter string // the header Retry-After
}

// isBusy reports whether the same request may succeed later.
func (r *refusal) isBusy() bool {
	return r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable
}

// wait returns how long to wait before the request is repeated, at least the given minimum. The header
// Retry-After is a number of seconds or a date (RFC 9110, section 10.2.3). If the clocks differ, the
// date may already be in the past on this machine.
func (r *refusal) wait(minimum time.Duration) time.Duration {
	var asked time.Duration
	if seconds, err := strconv.ParseUint(r.retryAfter, 10, 64); err == nil {
		asked = time.Duration(min(seconds, uint64(longestBusyWait/time.Second))) * time.Second
	} else if date, err := http.ParseTime(r.retryAfter); err == nil {
		asked = time.Until(date)
	}
	return min(max(asked, minimum), longestBusyWait)
}

func (r *refusal) Error() string {
	return fmt.Sprintf("asking the service: %s answered %d %s", r.address, r.status, http.StatusText(r.status))
}

// get sends a request to the source. While the source is busy, get waits and tries again.
func (s Source) get(ctx context.Context, address string) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		res, err := s.getOnce(ctx, address)
		var refused *refusal
		if !errors.As(err, &refused) || !refused.isBusy() || attempt == len(busyWaits) {
			return res, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(refused.wait(busyWaits[attempt])):
		}
	}
}

// getOnce sends a request to the source with the account's credentials. If the source redirects to
// another host, net/http removes the credentials. Some sources redirect media.
func (s Source) getOnce(ctx context.Context, address string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, problem.BadParam("from", "the address of the service is invalid")
	}

	req.SetBasicAuth(s.AccountID, s.Token)
	req.Header.Set("User-Agent", "selvage")
	res, err := sourceClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the service: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, &refusal{address, res.StatusCode, res.Header.Get("Retry-After")}
	}
	return res, nil
}
