package mail

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/mail"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	html "github.com/DataDog/datadog-agent/pkg/template/html"
	text "github.com/DataDog/datadog-agent/pkg/template/text"
)

// A Message is a letter in the form in which it is sent.
type Message struct {
	ID      string // the part of the Message-ID before the @
	Kind    Kind
	From    mail.Address
	ReplyTo string // may be ""
	To      string
	Subject string
	Text    string
	HTML    string
	Link    string // also in Text and HTML; "" if there is none
	Logo    []byte `json:",omitempty"` // a PNG that the HTML shows as cid:logo (RFC 2392); nil for none
}

// A Sender describes the From header of this installation's emails.
type Sender struct {
	Address string // in the From header and the envelope
	Name    string // the display name; "" means the name of the brand
	ReplyTo string // may be ""
}

var (
	//go:embed letter.html
	letterHTML string
	//go:embed letter.txt
	letterText string

	parsedHTML = html.Must(html.New("").Funcs(html.FuncMap{"lines": lines}).Parse(letterHTML))
	parsedText = text.Must(text.New("").Parse(letterText))
)

// A sheet is the input of the templates.
type sheet struct {
	words
	Lang   string // a BCP 47 tag
	Broken string // the sentence before the address of the link
	Brand  string
	Logo   Picture
	Link   string
	Footer string
	Color  string // color of the button, in the light theme
	Dark   string // color of the button, in the dark theme
	Ink    string // color of text on the button, in the light theme
	Deep   string // color of text on the button, in the dark theme
}

// write returns the message for the letter with the given id.
func (d Draft) write(id string, from Sender) (Message, error) {
	in := tongueOf(d.Language)
	w, ok := in.words[d.Kind]
	if !ok {
		return Message{}, fmt.Errorf("writing email: no text for %q", d.Kind)
	}

	values := d.values(in)
	s := sheet{
		words:  w.fill(values),
		Lang:   in.tag,
		Broken: in.broken,
		Brand:  oneLine(d.Brand.Name),
		Logo:   d.Brand.Logo,
		Link:   d.Link,
		Color:  "#2f4b9b",
		Dark:   "#9db4ff",
		Ink:    "#ffffff",
		Deep:   "#10131f",
	}
	s.Footer = words{Note: in.signed}.fill(values).Note

	if colorSyntax.MatchString(d.Brand.Color) {
		s.Color, s.Dark = d.Brand.Color, d.Brand.Color
		s.Ink = inkOn(d.Brand.Color)
		s.Deep = s.Ink
	}

	m := Message{
		ID:      id,
		Kind:    d.Kind,
		To:      d.To,
		Link:    d.Link,
		Logo:    d.Brand.Logo.PNG,
		Subject: s.Subject,
		ReplyTo: from.ReplyTo,
		From:    mail.Address{Name: oneLine(from.Name), Address: from.Address},
	}
	if m.From.Name == "" {
		m.From.Name = s.Brand
	}

	var out bytes.Buffer
	if err := parsedText.Execute(&out, s); err != nil {
		return m, fmt.Errorf("writing email: %w", err)
	}
	m.Text = out.String()
	out.Reset()
	if err := parsedHTML.Execute(&out, s); err != nil {
		return m, fmt.Errorf("writing email: %w", err)
	}
	m.HTML = out.String()
	return m, nil
}

// lines splits a paragraph into lines.
func lines(paragraph string) []string { return strings.Split(paragraph, "\n") }

// oneLine returns s as one line. Characters that could begin another header, or hide text, become spaces.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) ||
			unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.TrimSpace(s)
}

var colorSyntax = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// IsColor reports whether s is a color in the form that a [Brand] requires: # and six lowercase
// hexadecimal digits.
func IsColor(s string) bool { return colorSyntax.MatchString(s) }

// inkOn returns black or white, whichever is more readable on color. It approximates the relative
// luminance of WCAG 2.2.
func inkOn(color string) string {
	rgb, err := strconv.ParseUint(color[1:], 16, 32)
	if err != nil {
		return "#ffffff"
	}

	part := func(shift int) float64 { v := float64(rgb>>shift&0xff) / 255; return v * v }
	const middle = 0.18 // above this luminance, black is more readable
	if 0.2126*part(16)+0.7152*part(8)+0.0722*part(0) > middle {
		return "#111111"
	}
	return "#ffffff"
}
