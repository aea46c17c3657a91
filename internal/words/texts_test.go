package words_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/templates"
)

// dashboard is the directory with the Go code of the pages.
const dashboard = "../../operator/dashboard"

var (
	// prose matches literals that people read. Such literals begin like a sentence, or have several
	// words.
	prose = regexp.MustCompile(`^(?:[A-Z“(]|%(?:\[1\])?s,? |\{this\} ).*[a-z]{2}|^[a-z]+,? [a-z(]+.*$`)
	// other matches literals that people do not read: patterns, code, and formats.
	other = regexp.MustCompile(`^(?:GET|POST) |\n|curl|^selvage |^# |^[LM][%0-9]|^Bearer|^[A-Z][a-z]+/$|` +
		`^[A-Z][A-Za-z]*-[A-Z]|default-src|attachment;|^import |^%s is not valid JSON`)
)

// internalTexts lists literals that no page shows. They are logged, hashed or compared.
var internalTexts = []string{
	"no operator is signed in", "the operator must confirm their identity again",
	"signed in", "operator session ", "a form of the dashboard", "dashboard ", "Origin", "Location", "Mac OS X",
	"Cookie", "CallSid", "StartTime", "Authorization:", "too many fields",
	"neither an API key nor a token was sent, and no operator is signed in",
	"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "color must", "the color", "the color must",
	"changed meanwhile", "too many tries", "unknown account", "wrong password", "no password",
	"wrong email or password", "wrong e-mail or password",
	"the subscriber denied it", "the credentials lack the scope Management", "embed key", "room session",
	"the refresh token was used before; its family is revoked", "not a token of the project",
	"put on hold in the dashboard", "too many pages follow changes at the moment", "page",
}

// codeTexts returns the texts in the Go code of the dashboard.
func codeTexts(t *testing.T) (found []string) {
	t.Helper()
	files, err := filepath.Glob(dashboard + "/*.go")
	if err != nil || len(files) < 50 {
		t.Fatalf("the dashboard has %d files, %v, want at least 50", len(files), err)
	}

	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, textsIn(parsed)...)
	}
	return found
}

// textsIn returns the texts in a file that pages show.
func textsIn(file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if _, isImport := n.(*ast.ImportSpec); isImport {
			return false
		}
		if text := shownField(n); text != "" {
			found = append(found, text)
		}
		if call, isCall := n.(*ast.CallExpr); isCall && isProblem(call) {
			for _, arg := range call.Args {
				text, ok := constant(arg)
				if ok && strings.Contains(text, " ") && !strings.Contains(text, "%s") {
					found = append(found, sentence(text))
				}
			}
			return false
		}

		text, isConstant := constant(n)
		if isConstant && isProse(text) {
			found = append(found, strings.TrimSpace(text))
		}
		return !isConstant
	})
	return found
}

// isProse reports whether people read a literal.
func isProse(text string) bool {
	return prose.MatchString(text) && !other.MatchString(text) && !slices.Contains(internalTexts, text)
}

// shownFields lists the struct fields that pages always show.
var shownFields = []string{"Hint", "Label", "Why", "Button"}

// shownField returns the text in a field that pages show, if n sets such a field to a literal.
func shownField(n ast.Node) string {
	pair, ok := n.(*ast.KeyValueExpr)
	if !ok {
		return ""
	}
	name, ok := pair.Key.(*ast.Ident)
	if !ok || !slices.Contains(shownFields, name.Name) {
		return ""
	}
	text, _ := constant(pair.Value)
	return text
}

// callTexts returns the descriptions of why a call ended.
func callTexts(t *testing.T) (found []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "../../calls/result.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if text, ok := constant(pair.Value); ok {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}

// isProblem reports whether a call makes an error for clients. Pages show its message as a
// sentence.
func isProblem(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := f.X.(*ast.Ident)
	return ok && from.Name == "problem" && f.Sel.Name != "NoSuch"
}

// sentence returns an error message as forms show it: without the name of the field, which the
// label shows.
func sentence(text string) string {
	if name, rest, _ := strings.Cut(text, " "); strings.Contains(name, "_") {
		return strings.TrimSuffix(rest, ".") + "."
	}
	return strings.TrimSuffix(strings.ToUpper(text[:1])+text[1:], ".") + "."
}

// constant returns the value of a string literal, or of a concatenation of string literals.
func constant(n ast.Node) (string, bool) {
	switch e := n.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		left, isLeft := constant(e.X)
		right, isRight := constant(e.Y)
		if isLeft && isRight {
			return left + right, true
		}
	case *ast.ParenExpr:
		return constant(e.X)
	}
	return "", false
}

// kindTexts returns the texts in the kinds of resources.
func kindTexts() (all []string) {
	var members func(fields []kinds.Field, labels map[string]string)
	members = func(fields []kinds.Field, labels map[string]string) {
		for _, f := range fields {
			if labels[f.Name] == "" {
				all = append(all, kinds.Label(f.Name))
			}
			all = append(all, f.Description)
			members(f.Members, nil)
		}
	}

	for _, k := range kinds.Builtin().All() {
		all = append(all, k.Title, k.Description)
		for _, texts := range []map[string]string{k.Form.Labels, k.Form.Hints} {
			for _, text := range texts {
				all = append(all, text)
			}
		}
		members(k.Fields, k.Form.Labels)
	}
	return all
}

// alsoShown returns texts of the pages that are not literals of the dashboard. They describe times,
// values and errors in forms.
func alsoShown() (all []string) {
	all = []string{
		"1 minute ago", "%s minutes ago", "1 hour ago", "%s hours ago", "1 day ago", "%s days ago",
		"in 1 minute", "in %s minutes", "in 1 hour", "in %s hours", "in 1 day", "in %s days", "in a moment", "just now",
		"1 day", "2 Jan", "“%s”", "to %s", "owner", "admin", "viewer",
		"inbound", "outbound", "calling", "messaging", "default", "optional", "resource",
		"No", "15 minutes", "As JSON.", "In UTC.",
	}
	all = append(all, faults...)
	for _, why := range weakPasswords {
		all = append(all, "is too easy to guess: "+why)
	}
	for _, f := range fabric.PersonFields {
		all = append(all, f.Label)
	}
	for month := time.January; month <= time.December; month++ {
		all = append(all, month.String()[:3])
	}
	for _, action := range audit.Actions() {
		all = append(all, audit.Say(action, audit.Done))
		if refused := audit.Say(action, audit.Refused); !strings.HasSuffix(refused, ", refused") {
			all = append(all, refused)
		}
	}
	return all
}

// faults lists texts that forms show for wrong values: whole sentences, and texts that follow the
// label of a field.
var faults = []string{
	"is missing.", "is not valid JSON: check the quotes, commas and brackets in line %d.",
	"is too long (maximum is %d characters).", "is too short (minimum is %d characters).",
	"is not an email address.", "is not valid UTF-8.", "is in use already.",
	"must be a day, such as 2030-01-31.",
	"must be UTF-8 without control characters.", "must be a UUID.", "must be a number of seconds.",
	"must be a time such as 2030-01-31T12:00:00Z, or null.", "must be an http or https URL.", "must be an integer.",
	"must be in the future.", "must be true or false.", "must contain only UUIDs.", "must have at most %d characters.",
	"must not be negative.", "must not contain control characters.", "must not contain an address twice.",
	"must be a phone number such as +4930123456.", "must be sent again for another host or port.",
	"must be the beginning of a phone number with its country code, such as +49.",
	"must have only lower-case letters, digits and single hyphens between them.",
	"must not contain spaces, quotation marks or backslashes.", "must not contain spaces.",
	"must be user@host or user@host:port.", "must be tls if encryption is required.",
	"must be at least %d.", "must be at most %d.",
	"has too many items (maximum is %d).", "must not contain an item twice.",
	"The current password is wrong.", "The subscriber is disabled.",
	"The project has no subscriber with this id.", "The filter needs a name.",
	"The name of a filter can have at most %d characters.", "There is no filter to save, or it is too long.",
	"must be a PNG, JPEG or WebP image.", "must be at most %d KiB long.", "is damaged or incomplete.",
	"has %d by %d pixels; each side must be at most %d.", "has too many scans; save it as a baseline JPEG.",
	"has an address to which requests are not allowed.",
	"must not have a number as its host; write an IP address as four numbers.",
	"More than %d numbers end in these digits: enter more of them.",
	"More than %d addresses begin with this text: enter more of it.",
	"You can save at most %d filters: remove one first.", "Another filter already has this name.",
}

// weakPasswords lists the reasons why a password is too easy to guess.
var weakPasswords = []string{
	"it contains your email address.",
	"it repeats one character.",
	"it appeared in a data breach; choose one that you use nowhere else.",
	"it is a common word or name with small changes; three or four unrelated words are better.",
	"it is a row of neighboring keys; three or four unrelated words are better.",
	"it repeats itself; three or four unrelated words are better.",
	"it follows a sequence such as abcd or 1234; three or four unrelated words are better.",
	"it contains a date; three or four unrelated words are better.",
	"it is short; three or four unrelated words are better.",
	"it contains your email address, your name or the project's name; three or four unrelated words are better.",
	"it is similar to a very common password; three or four unrelated words are better.",
}

// TestTexts shows that every language translates exactly the texts of the dashboard and the demo,
// with the same values and elements.
func TestTexts(t *testing.T) {
	all, err := templates.Texts()
	if err != nil {
		t.Fatal(err)
	}
	all = slices.Concat(all, codeTexts(t), kindTexts(), callTexts(t), doctorTexts(t), settingTexts(t), alsoShown())
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(text string) bool { return text == "" })
	if len(all) < 1000 {
		t.Fatalf("the pages have %d texts, want at least 1000", len(all))
	}

	for _, w := range words.All() {
		if w == words.English() {
			continue
		}
		for _, text := range all {
			translation, ok := w.Texts()[text]
			if !ok {
				t.Errorf("%s lacks the text %q", w.Tag, text)
				continue
			}
			if got, want := partsOf(translation), partsOf(text); !slices.Equal(got, want) {
				t.Errorf("%s has the values and elements %q in its translation of %q, want %q", w.Tag, got, text, want)
			}
		}

		for text := range w.Texts() {
			if _, found := slices.BinarySearch(all, text); !found {
				t.Errorf("%s translates %q, which no page shows", w.Tag, text)
			}
		}
	}

	if path := os.Getenv("SELVAGE_TEXTS"); path != "" {
		if err := os.WriteFile(path, []byte(strings.Join(all, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var part = regexp.MustCompile(`\{\{[^}]*\}\}|</?[a-z]+>|%(?:\[\d\])?s|\{[a-z]+\}`)

// partsOf returns the values and elements in a text, sorted.
func partsOf(text string) []string {
	all := part.FindAllString(text, -1)
	for i, p := range all {
		if strings.HasPrefix(p, "%[") {
			all[i] = "%s"
		}
	}
	slices.Sort(all)
	return all
}
