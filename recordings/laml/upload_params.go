package laml

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// A parameter is a value that a sender can give with an upload. It is in the query or the form
// under its name, or in one of the headers. From the third on, the headers of a parameter are those
// that rtpengine's recording daemon sends (notify-uri).
type parameter struct {
	name    string
	headers []string
	set     func(d *recordings.Description, value string) error
}

// setText returns a set function for a parameter that is stored unchanged.
func setText(field func(d *recordings.Description) *string) func(*recordings.Description, string) error {
	return func(d *recordings.Description, value string) error {
		*field(d) = value
		return nil
	}
}

var parameters = []parameter{
	{"CallSid", []string{"X-Recording-CallSid", "X-Recording-Call-Sid", "X-Recording-Call-ID"},
		setText(func(d *recordings.Description) *string { return &d.CallSid })},
	{"ConferenceSid", []string{"X-Recording-ConferenceSid", "X-Recording-Conference-Sid"},
		setText(func(d *recordings.Description) *string { return &d.ConferenceSid })},
	{"From", []string{"X-Recording-From"}, setText(func(d *recordings.Description) *string { return &d.From })},
	{"To", []string{"X-Recording-To"}, setText(func(d *recordings.Description) *string { return &d.To })},
	{"Direction", []string{"X-Recording-Direction"},
		setText(func(d *recordings.Description) *string { return &d.Direction })},
	{"Source", []string{"X-Recording-Source"}, setText(func(d *recordings.Description) *string { return &d.Source })},
	{"Track", []string{"X-Recording-Track"}, setText(func(d *recordings.Description) *string { return &d.Track })},
	{"SubscriberId", []string{"X-Recording-SubscriberId", "X-Recording-Subscriber-Id"},
		setText(func(d *recordings.Description) *string { return &d.SubscriberID })},
	{"RecordingSid", []string{"X-Recording-Sid", "X-Recording-RecordingSid"},
		setText(func(d *recordings.Description) *string { return &d.Sid })},
	{"RecordingStatusCallback", nil, setText(func(d *recordings.Description) *string { return &d.Callback.URL })},
	{"RecordingStatusCallbackMethod", nil, setCallbackMethod},
	{"RecordingStatusCallbackEvent", nil, setCallbackEvents},
	{"StartTime", []string{"X-Recording-StartTime", "X-Recording-Start-Time", "X-Recording-Stream-Start-Time",
		"X-Recording-Call-Start-Time"},
		setStartTime},
	{"", []string{"Idempotency-Key"}, setText(func(d *recordings.Description) *string { return &d.IdempotencyKey })},
	{"", []string{"X-Recording-Full-File-Name", "X-Recording-File-Name"},
		setText(func(d *recordings.Description) *string { return &d.Path })},
}

// readDescription reads the description of an upload from its request. Earlier elements of fields
// take precedence over later elements, and all elements over headers.
func readDescription(headers http.Header, fields ...url.Values) (recordings.Description, error) {
	var d recordings.Description
	for _, p := range parameters {
		value, err := p.value(headers, fields)
		if err != nil {
			return d, err
		}
		if value == "" {
			continue
		}
		if err := p.set(&d, value); err != nil {
			return d, err
		}
	}
	return d, nil
}

// value returns the first value that is not empty. It looks at fields in their order, and then at
// headers.
func (p parameter) value(headers http.Header, fields []url.Values) (string, error) {
	for _, f := range fields {
		switch values := f[p.name]; {
		case p.name == "":
		case len(values) > 1:
			return "", problem.BadParam(p.name, "%s is repeated", p.name)
		case len(values) == 1 && values[0] != "":
			return values[0], nil
		}
	}

	for _, name := range p.headers {
		switch values := headers.Values(name); {
		case len(values) > 1:
			return "", problem.BadParam(name, "%s is repeated", name)
		case len(values) == 1 && values[0] != "":
			return values[0], nil
		}
	}
	return "", nil
}

func setCallbackMethod(d *recordings.Description, value string) error {
	d.Callback.Method = strings.ToUpper(value)
	return nil
}

func setCallbackEvents(d *recordings.Description, value string) error {
	d.Callback.Events = strings.Fields(value)
	return nil
}

// setStartTime parses a date, or seconds since 1970 with an optional fraction.
func setStartTime(d *recordings.Description, value string) error {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if !(seconds >= 0 && seconds < 1<<40) {
			return problem.BadParam("StartTime", "StartTime must be between 1970 and now")
		}
		whole, fraction := math.Modf(seconds)
		d.StartTime = time.Unix(int64(whole), int64(fraction*1e9)).UTC()
		return nil
	}
	at, ok := parseDate(value)
	if !ok {
		return badDate("StartTime")
	}
	d.StartTime = at
	return nil
}
