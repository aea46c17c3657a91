// Package naming extracts facts about calls from the names of their recordings.
//
// A [Pattern] describes names such as "{domain}/archive/{Y}/{b}/{d}/{uuid}.{ext}". Presets are the
// patterns of common switches. [ReadSidecar] reads a JSON file about a recording.
package naming

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// fields maps the fields of patterns to regular expressions for their values.
var fields = map[string]string{
	"call":       `[^/]+?`,
	"uuid":       `[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`,
	"conference": `[^/]+?`,
	"from":       `[^/]*?`,
	"to":         `[^/]*?`,
	"direction":  `[A-Za-z]+`,
	"track":      `[^/]+?`,
	"domain":     `[^/]+`,
	"any":        `[^/]*?`,
	"random":     `[0-9A-Fa-f]{8,}`,
	"ext":        `[A-Za-z0-9]+`,
	"epoch":      `[0-9]{9,10}(?:\.[0-9]+)?`,
	"Y":          `[0-9]{4}`,
	"m":          `[0-9]{2}`,
	"b":          `[A-Z][a-z]{2}`,
	"d":          `[0-9]{2}`,
	"H":          `[0-9]{2}`,
	"M":          `[0-9]{2}`,
	"S":          `[0-9]{2}`,
}

// presets maps the names of switches to their patterns, the most specific first.
var presets = map[string][]string{
	"fusionpbx": {
		"{domain}/archive/{Y}/{b}/{d}/{uuid}.{ext}",
		"{uuid}.{ext}",
	},
	"asterisk-monitor": {
		"{direction}-{to}-{from}-{Y}{m}{d}-{H}{M}{S}-{call}.{ext}",
		"{Y}{m}{d}-{H}{M}{S}-{call}.{ext}",
		"{call}.{ext}",
	},
	"rtpengine": {
		"{call}-{random}-{track}.{ext}",
		"{call}-{track}.{ext}",
	},
	"jambonz": {
		"{Y}/{m}/{d}/{call}.{ext}",
		"{call}.{ext}",
	},
	"kazoo": {
		"call_recording_{call}.{ext}",
	},
	"livekit": {
		"{conference}-{Y}-{m}-{d}T{H}{M}{S}.{ext}",
	},
}

// Presets returns the names of the presets.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// Patterns is a list of patterns that are tried in order.
type Patterns []Pattern

// A Pattern matches the end of a path.
type Pattern struct{ expression *regexp.Regexp }

// Preset returns the patterns of a preset.
func Preset(name string) (Patterns, error) {
	texts, ok := presets[name]
	if !ok {
		return nil, problem.BadParam("names", "unknown preset %q: use %s", name, strings.Join(Presets(), ", "))
	}
	var patterns Patterns
	for _, text := range texts {
		p, err := Parse(text)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

var field = regexp.MustCompile(`\{([A-Za-z]+)\}`)

// Parse parses a pattern, which is text with fields in braces.
func Parse(pattern string) (Pattern, error) {
	var expression strings.Builder
	expression.WriteString(`(?:^|/)`)
	seen := make(map[string]bool)
	rest := 0 // the pattern has been converted up to here
	for _, match := range field.FindAllStringSubmatchIndex(pattern, -1) {
		start, end := match[0], match[1]
		name := pattern[match[2]:match[3]]
		value, ok := fields[name]
		if !ok || seen[name] {
			known := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
			return Pattern{}, problem.BadParam("pattern",
				"the pattern has the unknown or repeated field {%s}: use each of these fields at most once: %s",
				name, known)
		}
		seen[name] = true
		expression.WriteString(regexp.QuoteMeta(pattern[rest:start]))
		expression.WriteString(`(?P<` + name + `>` + value + `)`)
		rest = end
	}

	expression.WriteString(regexp.QuoteMeta(pattern[rest:]) + `$`)
	compiled, err := regexp.Compile(expression.String())
	if err != nil {
		return Pattern{}, fmt.Errorf("compiling pattern: %w", err)
	}
	return Pattern{compiled}, nil
}

// Describe adds to d the values that the first matching pattern finds in path, and reports whether
// any pattern matches. It does not change fields that are already set.
func (ps Patterns) Describe(path string, d *recordings.Description) bool {
	path = filepath.ToSlash(path)
	for _, p := range ps {
		if match := p.expression.FindStringSubmatch(path); match != nil {
			p.fill(match, d)
			return true
		}
	}
	return false
}

// fill sets the fields of d to the values in a match, unless they are already set.
func (p Pattern) fill(match []string, d *recordings.Description) {
	values := make(map[string]string)
	for i, name := range p.expression.SubexpNames() {
		if name != "" {
			values[name] = match[i]
		}
	}

	if d.ConferenceSid == "" && d.CallSid == "" {
		d.CallSid = unescape(values["call"] + values["uuid"])
		d.ConferenceSid = values["conference"]
	}
	setIfEmpty(&d.From, values["from"])
	setIfEmpty(&d.To, values["to"])
	setIfEmpty(&d.Direction, directions[strings.ToLower(values["direction"])])
	setIfEmpty(&d.Track, tracks[strings.ToLower(values["track"])])
	if d.StartTime.IsZero() {
		d.StartTime = startTime(values)
	}
}

func setIfEmpty(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// unescape removes the escapes that rtpengine writes in call ids, such as %40 for @.
func unescape(call string) string {
	if plain, err := url.PathUnescape(call); err == nil {
		return plain
	}
	return call
}

// directions maps the names used by switches to our directions.
var directions = map[string]string{
	"in":       "inbound",
	"inbound":  "inbound",
	"external": "inbound",
	"q":        "inbound",
	"rg":       "inbound",
	"out":      "outbound",
	"outbound": "outbound",
}

// tracks maps the names used by switches to our tracks.
var tracks = map[string]string{
	"mix":      "both",
	"both":     "both",
	"in":       "inbound",
	"inbound":  "inbound",
	"out":      "outbound",
	"outbound": "outbound",
}

// startTime returns the time in a name, or the zero time. A date and time of day are in the
// switch's time zone, which is unknown, so they are interpreted as UTC.
func startTime(values map[string]string) time.Time {
	if epoch := values["epoch"]; epoch != "" {
		seconds, err := strconv.ParseFloat(epoch, 64)
		if err != nil {
			return time.Time{}
		}
		return time.UnixMicro(int64(seconds * 1e6)).UTC()
	}
	if values["Y"] == "" || values["H"] == "" {
		return time.Time{} // a date without a time is not precise enough
	}

	month, layout := values["m"], "2006-01-02 15:04:05"
	if month == "" {
		month, layout = values["b"], "2006-Jan-02 15:04:05"
	}
	text := fmt.Sprintf("%s-%s-%s %s:%s:%s",
		values["Y"], month, values["d"], values["H"], values["M"], values["S"])
	start, err := time.Parse(layout, text)
	if err != nil {
		return time.Time{}
	}
	return start
}
