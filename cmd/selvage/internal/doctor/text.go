package doctor

import "github.com/selvage/selvage/internal/words"

// A Text is a text of package words, such as a result of words.Textf. Pages translate it. Commands
// print it in English.
type Text string

// textf returns a text with values. Each verb of the format is %s.
func textf(format string, values ...any) Text { return Text(words.Textf(format, values...)) }

// and adds another text to t, after a space.
func (t Text) and(more Text) Text { return Text(words.Sentences(string(t), string(more))) }

// String formats t in English.
func (t Text) String() string { return words.English().Text(string(t)) }

// MarshalText formats t in English.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
