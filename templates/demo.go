package templates

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/static"
)

// demoScripts are the scripts of the demo. Their texts are in English; the page hands them the
// translations.
var demoScripts = []string{"demo.js", "demo-view.js", "demo-stock.js", "demo-chat.js"}

// scriptText matches a text in a script: a property of a step, or the argument of say or Error.
var scriptText = regexp.MustCompile(`(?:\b(?:title|text|button|hint): |\b(?:say|Error)\()("(?:[^"\\]|\\.)*")`)

// scriptTexts returns the texts in the scripts of the demo.
func scriptTexts() (all []string) {
	for _, name := range demoScripts {
		for _, m := range scriptText.FindAllStringSubmatch(static.Text(name), -1) {
			var text string // our scripts have only strings that are also JSON
			if json.Unmarshal([]byte(m[1]), &text) == nil && !strings.HasSuffix(text, "()") {
				all = append(all, text)
			}
		}
	}
	return all
}

// scriptWords returns the translations of the texts in the scripts of the demo, as a JSON object. It
// is empty for English.
func scriptWords(w *words.Words) (string, error) {
	said := make(map[string]string)
	for _, text := range scriptTexts() {
		if !w.Lacks(text) && w != words.English() {
			said[text] = w.Text(text)
		}
	}
	raw, err := json.Marshal(said)
	return string(raw), err
}
