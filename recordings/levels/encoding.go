package levels

import (
	"fmt"
	"strconv"
	"strings"
)

// textVersion is the first word of each text. It lets later versions add words.
const textVersion = "1"

// unknown is the word for an unknown value.
const unknown = "-"

// numbers returns pointers to the facts that are single numbers, in the order of the text. The
// optional facts may be unknown.
func (f *Facts) numbers() (optional []**float64, known []*float64) {
	return []**float64{&f.Peak, &f.RMS, &f.Loudness, &f.Overlap, &f.FirstSpeech},
		[]*float64{&f.Clipped, &f.DCOffset, &f.SilenceRatio, &f.LongestSilence}
}

// Text formats the facts as one line for a store. The line can be parsed many times faster than
// JSON. It contains a version, the flags, all single numbers, and the talk of each leg.
func (f Facts) Text() string {
	words := []string{textVersion, strconv.Itoa(int(f.Flags))}
	optional, known := f.numbers()
	for _, v := range optional {
		if *v == nil {
			words = append(words, unknown)
		} else {
			words = append(words, number(**v))
		}
	}

	for _, v := range known {
		words = append(words, number(*v))
	}
	for _, v := range f.Talk {
		words = append(words, number(v))
	}
	return strings.Join(words, " ")
}

// number formats a number with as many digits as it needs.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// ParseText parses the result of Text.
func ParseText(text string) (f Facts, err error) {
	r := reader{rest: text}
	if version := r.word(); version != textVersion {
		return f, fmt.Errorf("reading levels: unsupported version %q", version)
	}

	flags, err := strconv.ParseUint(r.word(), 10, 8)
	if err != nil {
		return f, fmt.Errorf("reading levels: %w", err)
	}
	f.Flags = Flags(flags)

	optional, known := f.numbers()
	for _, v := range optional {
		if word := r.word(); word != unknown {
			n := r.number(word)
			*v = &n
		}
	}
	for _, v := range known {
		*v = r.number(r.word())
	}

	f.Talk = make([]float64, 0, 2)
	for r.rest != "" {
		f.Talk = append(f.Talk, r.number(r.word()))
	}
	return f, r.err
}

// A reader splits a text into words, and keeps the first error.
type reader struct {
	rest string
	err  error
}

// word returns the next word, or "" at the end.
func (r *reader) word() string {
	word, rest, _ := strings.Cut(r.rest, " ")
	r.rest = rest
	return word
}

// number parses a word.
func (r *reader) number(word string) float64 {
	v, err := strconv.ParseFloat(word, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("reading levels: %w", err)
	}
	return v
}
