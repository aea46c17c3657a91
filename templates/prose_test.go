package templates

import "testing"

// TestProse shows that texts become sentences with code, and that markup in them is escaped.
func TestProse(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"run `selvage ca status`":     "Run <code>selvage ca status</code>.",
		"backup.dir is not set":       "backup.dir is not set.",
		"the disk's almost full.":     "The disk’s almost full.",
		"<b> & `<i>`, not closed: `x": "&lt;b&gt; &amp; <code>&lt;i&gt;</code>, not closed: <code>x.</code>",
	} {
		if got := string(prose(text)); got != want {
			t.Errorf("prose(%q) = %q, want %q", text, got, want)
		}
	}
}
