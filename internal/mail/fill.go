package mail

import (
	"maps"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/agent"
)

// values returns the draft's facts as the letter shows them in the given language. The facts "by"
// and "what" become phrases of that language, with their own placeholders already replaced.
func (d Draft) values(in tongue) map[string]string {
	values := map[string]string{"brand": d.Brand.Name, "to": d.To}
	maps.Copy(values, d.Facts)

	if when, err := time.Parse(time.RFC3339, d.Facts["when"]); err == nil {
		values["when"] = when.UTC().Format(in.date)
	}
	if header, ok := d.Facts["agent"]; ok {
		values["device"] = in.device.Replace(agent.Name(header))
	}

	if d.Facts["by"] != "" {
		values["by"] = replace(in.others, values)
	}
	if what := d.Facts["what"]; what != "" {
		values["what"] = replace(in.changes[what], values)
	}
	return values
}

// replace replaces each placeholder {name} in text with values[name]. It does not replace
// placeholders within the values.
func replace(text string, values map[string]string) string {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{"+name+"}", oneLine(value))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// fill replaces the placeholders in w with values. From a paragraph with several lines, it drops
// each line whose value is missing or empty.
func (w words) fill(values map[string]string) words {
	filled := words{
		Subject: oneLine(replace(w.Subject, values)),
		Title:   replace(w.Title, values),
		Button:  w.Button,
		Note:    replace(w.Note, values),
	}

	for _, p := range w.Text {
		lines := strings.Split(p, "\n")
		var known []string
		for _, line := range lines {
			_, name, _ := strings.Cut(line, "{")
			name, _, _ = strings.Cut(name, "}")
			if len(lines) == 1 || values[name] != "" {
				known = append(known, replace(line, values))
			}
		}
		if len(known) > 0 {
			filled.Text = append(filled.Text, strings.Join(known, "\n"))
		}
	}
	return filled
}
