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

type description = recordings.Description

// A parameter is a value that a sender can give with an upload. It is in the query or the form
// under its name, or in one of the headers. rtpengine's recording daemon (notify-uri) sends the
// headers of the path, and the third and later headers of other parameters.
type parameter struct {
	name    string
	headers []string
	set     func(d *description, value string) error
}

// setText returns a set function for a parameter that is stored unchanged.
func setText(field func(d *description) *string) func(*description, string) error {
	return func(d *description, value string) error {
		*field(d) = value
		return nil
	}
}

var parameters = []parameter{
	{
		name:    "CallSid",
		headers: []string{"X-Recording-CallSid", "X-Recording-Call-Sid", "X-Recording-Call-ID"},
		set:     setText(func(d *description) *string { return &d.CallSid }),
	},
	{
		name:    "ConferenceSid",
		headers: []string{"X-Recording-ConferenceSid", "X-Recording-Conference-Sid"},
		set:     setText(func(d *description) *string { return &d.ConferenceSid }),
	},
	{
		name:    "From",
		headers: []string{"X-Recording-From"},
		set:     setText(func(d *description) *string { return &d.From }),
	},
	{
		name:    "To",
		headers: []string{"X-Recording-To"},
		set:     setText(func(d *description) *string { return &d.To }),
	},
	{
		name:    "Direction",
		headers: []string{"X-Recording-Direction"},
		set:     setText(func(d *description) *string { return &d.Direction }),
	},
	{
		name:    "Source",
		headers: []string{"X-Recording-Source"},
		set:     setText(func(d *description) *string { return &d.Source }),
	},
	{
		name:    "Track",
		headers: []string{"X-Recording-Track"},
		set:     setText(func(d *description) *string { return &d.Track }),
	},
	{
		name:    "SubscriberId",
		headers: []string{"X-Recording-SubscriberId", "X-Recording-Subscriber-Id"},
		set:     setText(func(d *description) *string { return &d.SubscriberID }),
	},
	{
		name:    "RecordingSid",
		headers: []string{"X-Recording-Sid", "X-Recording-RecordingSid"},
		set:     setText(func(d *description) *string { return &d.Sid }),
	},
	{
		name: "RecordingStatusCallback",
		set:  setText(func(d *description) *string { return &d.Callback.URL }),
	},
	{
		name: "RecordingStatusCallbackMethod",
		set:  setCallbackMethod,
	},
	{
		name: "RecordingStatusCallbackEvent",
		set:  setCallbackEvents,
	},
	{
		name: "StartTime",
		headers: []string{
			"X-Recording-StartTime", "X-Recording-Start-Time",
			"X-Recording-Stream-Start-Time", "X-Recording-Call-Start-Time",
		},
		set: setStartTime,
	},
	{
		headers: []string{"Idempotency-Key"},
		set:     setText(func(d *description) *string { return &d.IdempotencyKey }),
	},
	{
		headers: []string{"X-Recording-Full-File-Name", "X-Recording-File-Name"},
		set:     setText(func(d *description) *string { return &d.Path }),
	},
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
	if p.name != "" {
		for _, f := range fields {
			value, err := singleValue(p.name, f[p.name])
			if err != nil || value != "" {
				return value, err
			}
		}
	}
	for _, name := range p.headers {
		value, err := singleValue(name, headers.Values(name))
		if err != nil || value != "" {
			return value, err
		}
	}
	return "", nil
}

// singleValue returns the only value of a field or header, or "" if there is none.
func singleValue(name string, values []string) (string, error) {
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	}
	return "", problem.BadParam(name, "%s is repeated", name)
}

// setCallbackMethod sets the method of the callback, which may be in lower case.
func setCallbackMethod(d *description, value string) error {
	d.Callback.Method = strings.ToUpper(value)
	return nil
}

// setCallbackEvents sets the events of the callback, which are separated by spaces.
func setCallbackEvents(d *description, value string) error {
	d.Callback.Events = strings.Fields(value)
	return nil
}

// setStartTime parses a date, or seconds since 1970 with an optional fraction.
func setStartTime(d *description, value string) error {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if !(seconds >= 0 && seconds < 1<<40) {
			return problem.BadParam("StartTime", "StartTime must be between 1970 and now")
		}
		whole, fraction := math.Modf(seconds)
		d.StartTime = time.Unix(int64(whole), int64(fraction*1e9)).UTC()
		return nil
	}
	start, ok := parseDate(value)
	if !ok {
		return badDate("StartTime")
	}
	d.StartTime = start
	return nil
}
