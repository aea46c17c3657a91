package naming

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/recordings"
)

// members maps the fields of a description to their names in the JSON of switches and platforms,
// the best first. The names are in lower case without underscores.
var members = map[string][]string{
	"call":       {"callsid", "callid", "calluuid"},
	"conference": {"conferencesid", "roomname", "roomid"},
	"from":       {"from", "fromaddress", "calleridnumber"},
	"to":         {"to", "toaddress", "destinationnumber"},
	"direction":  {"direction"},
	"start":      {"starttime", "startedat", "callstarttime", "startstamp"},
	"track":      {"track"},
}

// ReadSidecar adds to d the description of a recording in a JSON object. It knows the names that
// LaML, jambonz and LiveKit's manifests use. It does not change fields that are already set.
func ReadSidecar(text []byte, d *recordings.Description) error {
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("reading the JSON about the recording: %w", err)
	}

	values := make(map[string]string)
	for name, value := range object {
		plain := strings.ToLower(strings.ReplaceAll(name, "_", ""))
		switch value := value.(type) {
		case string:
			values[plain] = value
		case float64:
			values[plain] = strconv.FormatFloat(value, 'f', -1, 64)
		}
	}

	of := func(field string) string {
		i := slices.IndexFunc(members[field], func(name string) bool { return values[name] != "" })
		if i < 0 {
			return ""
		}
		return values[members[field][i]]
	}

	set := func(to *string, value string) {
		if *to == "" {
			*to = value
		}
	}

	if d.CallSid == "" && d.ConferenceSid == "" {
		d.CallSid = of("call")
		if d.CallSid == "" {
			d.ConferenceSid = of("conference")
		}
	}

	set(&d.From, of("from"))
	set(&d.To, of("to"))
	set(&d.Direction, directions[strings.ToLower(of("direction"))])
	set(&d.Track, tracks[strings.ToLower(of("track"))])
	if d.StartTime.IsZero() {
		d.StartTime = parseTime(of("start"))
	}
	return nil
}

// parseTime parses a time in ISO 8601 or RFC 2822, or in seconds, milliseconds, microseconds or
// nanoseconds since 1970.
func parseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, time.RFC1123Z, "2006-01-02 15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n < 1e21) { // also rejects NaN and infinity
		return time.Time{}
	}
	for n > 1e11 { // milliseconds, microseconds or nanoseconds
		n /= 1000
	}
	return time.UnixMicro(int64(n * 1e6)).UTC()
}
