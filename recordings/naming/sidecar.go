package naming

import (
	"encoding/json"
	"fmt"
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

// ReadSidecar reads the description of a recording from a JSON object into d. It knows the names that
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

	best := func(field string) string {
		for _, name := range members[field] {
			if values[name] != "" {
				return values[name]
			}
		}
		return ""
	}
	if d.CallSid == "" && d.ConferenceSid == "" {
		d.CallSid = best("call")
		if d.CallSid == "" {
			d.ConferenceSid = best("conference")
		}
	}
	setIfEmpty(&d.From, best("from"))
	setIfEmpty(&d.To, best("to"))
	setIfEmpty(&d.Direction, directions[strings.ToLower(best("direction"))])
	setIfEmpty(&d.Track, tracks[strings.ToLower(best("track"))])
	if d.StartTime.IsZero() {
		d.StartTime = parseTime(best("start"))
	}
	return nil
}

// parseTime parses a time in ISO 8601 or RFC 2822, or in seconds, milliseconds, microseconds or
// nanoseconds since 1970.
func parseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, time.RFC1123Z, "2006-01-02 15:04:05"} {
		if parsed, err := time.Parse(layout, text); err == nil {
			return parsed.UTC()
		}
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0 && seconds < 1e21) { // also rejects NaN and infinity
		return time.Time{}
	}
	for seconds > 1e11 { // text contains milliseconds, microseconds or nanoseconds
		seconds /= 1000
	}
	return time.UnixMicro(int64(seconds * 1e6)).UTC()
}
