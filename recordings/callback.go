package recordings

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/deliver"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// A Callback is the endpoint to which a recording's status is reported.
type Callback struct {
	URL    string   // "" disables the callback
	Events []string // members of CallbackEvents
	Method string   // a member of CallbackMethods
}

// Values allowed in a callback, the default first. An event is a [Status].
var (
	CallbackEvents  = []string{"completed", "in-progress", "absent"}
	CallbackMethods = []string{"POST", "GET"}
)

// CodeBadEvent is the error code for a callback with an unknown event.
const CodeBadEvent = "13621"

// maxURL is the maximum length of a callback's URL, in bytes.
const maxURL = 2048

// Wants reports whether the status s is sent to the callback.
func (c Callback) Wants(s Status) bool { return c.URL != "" && slices.Contains(c.Events, string(s)) }

// withDefaults sorts the events and removes repeated ones. If the callback has a URL, it also fills
// in the default method and event.
func (c Callback) withDefaults() Callback {
	c.Events = slices.Clone(c.Events)
	slices.SortFunc(c.Events, func(a, b string) int {
		return slices.Index(CallbackEvents, a) - slices.Index(CallbackEvents, b)
	})
	c.Events = slices.Compact(c.Events)
	if c.URL == "" {
		return c
	}

	c.Method = cmp.Or(c.Method, CallbackMethods[0])
	if len(c.Events) == 0 {
		c.Events = CallbackEvents[:1]
	}
	return c
}

// checkCallback returns an error that lists all faults of a callback.
func (r *Recordings) checkCallback(c Callback) error {
	errs := []error{checkMember("RecordingStatusCallbackMethod", c.Method, CallbackMethods)}
	for _, event := range c.Events {
		if !slices.Contains(CallbackEvents, event) {
			errs = append(errs, withCode(CodeBadEvent, problem.BadParam("RecordingStatusCallbackEvent",
				"each RecordingStatusCallbackEvent must be one of %s", strings.Join(CallbackEvents, ", "))))
			break
		}
	}
	if c.URL != "" {
		errs = append(errs, r.checkCallbackURL(c.URL))
	}
	return errors.Join(errs...)
}

// checkCallbackURL returns an error unless text is a URL to which requests may be sent.
func (r *Recordings) checkCallbackURL(text string) error {
	const param = "RecordingStatusCallback"
	if err := checkText(param, text, maxURL); err != nil {
		return err
	}
	invalid := problem.BadParam(param, "RecordingStatusCallback must be an http or https URL")
	u, err := url.Parse(text)
	if err != nil {
		return invalid
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return invalid
	}
	if u.Hostname() == "" || u.Opaque != "" {
		return invalid
	}
	return r.c.CheckURL(param, text)
}

// CallbackFields returns the form fields that are sent to the callback of a recording. The caller
// adds RecordingUrl, which depends on the server's URL.
func (r Recording) CallbackFields() url.Values {
	fields := url.Values{
		"AccountSid":        {r.ProjectID},
		"RecordingSid":      {r.Sid},
		"RecordingStatus":   {string(r.Status)},
		"RecordingDuration": {strconv.FormatInt(r.Seconds(), 10)},
		"RecordingChannels": {strconv.Itoa(r.Channels)},
		"RecordingSource":   {r.Source},
		"RecordingTrack":    {r.Track},
	}
	for name, value := range map[string]string{
		"CallSid":       r.CallSid,
		"ConferenceSid": r.ConferenceSid,
		"ErrorCode":     r.ErrorCode,
	} {
		if value != "" {
			fields.Set(name, value)
		}
	}
	if !r.StartTime.IsZero() {
		fields.Set("RecordingStartTime", r.StartTime.UTC().Format(time.RFC1123Z))
	}
	return fields
}

// A Delivery is a report of a recording's status to the recording's callback. Its Progress shows
// whether it has been sent.
type Delivery struct {
	ID        string // IDs are in the order of creation
	ProjectID string
	Sid       string // Sid of the recording
	Event     Status
	URL       string
	Method    string
	Fields    string // CallbackFields, encoded as a form
	deliver.Progress
}

// ParseDelivery parses the method, URL and fields of a delivery, one per line. They are the body of
// its job in package deliver.
func ParseDelivery(job []byte) (Delivery, error) {
	lines := strings.SplitN(string(job), "\n", 3)
	if len(lines) != 3 {
		return Delivery{}, errors.New("reading a delivery: it has fewer than three lines")
	}
	return Delivery{Method: lines[0], URL: lines[1], Fields: lines[2]}, nil
}

// A DeliveryStore stores the deliveries to callbacks. The methods of [Store] that change a
// recording's status also queue its delivery, in the same transaction.
type DeliveryStore interface {
	// ListCallbacks returns a page of a project's deliveries in the given state, newest first. The
	// state "" means all states.
	ListCallbacks(ctx context.Context, projectID string, s deliver.State, q page.Query) (page.Page[Delivery], error)
	// RedeliverCallback queues a delivery of the project again, whatever its state, due at now. If
	// the delivery is unknown, it returns problem.NotFound.
	RedeliverCallback(ctx context.Context, projectID, id string, now time.Time) (Delivery, error)
	// RedeliverDeadCallbacks queues all dead letters of the project again, and returns their
	// number.
	RedeliverDeadCallbacks(ctx context.Context, projectID string, now time.Time) (int, error)
	// ExpireCallbacks turns pending deliveries that were queued before the given time into dead
	// letters.
	ExpireCallbacks(ctx context.Context, before, now time.Time) error
	// ForgetCallbacks deletes deliveries that succeeded before the first of the given times, and
	// dead letters that ended before the second. It also deletes receivers that are idle at now.
	ForgetCallbacks(ctx context.Context, delivered, dead, now time.Time) error
}

// Callbacks manages the deliveries to the callbacks of recordings.
type Callbacks struct{ *Recordings }

// Callbacks returns the deliveries to callbacks.
func (r *Recordings) Callbacks() Callbacks { return Callbacks{r} }

// List returns a page of the project's deliveries to callbacks in the given state, newest first.
// The state "" means all states.
func (cb Callbacks) List(
	ctx context.Context, projectID string, s deliver.State, q page.Query,
) (page.Page[Delivery], error) {
	return cb.c.Store.ListCallbacks(ctx, projectID, s, q)
}

// Redeliver queues a delivery to a callback again, whatever its state, with the same fields.
func (cb Callbacks) Redeliver(ctx context.Context, projectID, id string) (Delivery, error) {
	u, err := uuid.Parse(id)
	if err != nil {
		return Delivery{}, problem.NoSuch("delivery")
	}
	return cb.c.Store.RedeliverCallback(ctx, projectID, u.String(), cb.c.Now())
}

// RedeliverDead queues all dead letters of a project's callbacks again, and returns their number.
func (cb Callbacks) RedeliverDead(ctx context.Context, projectID string) (int, error) {
	return cb.c.Store.RedeliverDeadCallbacks(ctx, projectID, cb.c.Now())
}

// sweepCallbacks turns pending deliveries that have waited too long into dead letters, and deletes
// old deliveries.
func (r *Recordings) sweepCallbacks(ctx context.Context) error {
	now := r.c.Now()
	return errors.Join(
		r.c.Store.ExpireCallbacks(ctx, now.Add(-deliver.WaitAtMost), now),
		r.c.Store.ForgetCallbacks(ctx, now.Add(-deliver.KeepDelivered), now.Add(-deliver.KeepDead), now))
}
