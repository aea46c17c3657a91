package kinds

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	schemakind "github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/selvage/selvage/internal/problem"
)

// Values holds the members of one resource as JSON, by name.
type Values map[string]json.RawMessage

// Text returns the member as a string without surrounding space. If the member is not a string, it
// returns "".
func (v Values) Text(name string) string {
	var text string
	if json.Unmarshal(v[name], &text) != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// New returns the values of a new resource. They are the sent members, and the defaults of the
// other members. Unknown and read-only members are ignored. The error joins a problem.Invalid for
// each wrong member. Its Param is the name of the member.
func (k *Kind) New(sent map[string]json.RawMessage) (Values, error) {
	v, errs := k.taken(sent)
	for _, f := range k.Fields {
		_, ok := v[f.Name]
		switch {
		case ok, f.ReadOnly:
		case f.Required:
			errs = append(errs, problem.Missing(f.Name))
		case f.Default != nil:
			v[f.Name] = f.Default
		}
	}
	return v, errors.Join(errs...)
}

// Change returns a copy of old with the values of the members in sent. The other members are
// unchanged.
func (k *Kind) Change(old Values, sent map[string]json.RawMessage) (Values, error) {
	changed, errs := k.taken(sent)
	for name, value := range old {
		if _, ok := changed[name]; !ok {
			changed[name] = value
		}
	}
	return changed, errors.Join(errs...)
}

// taken returns those members of sent that a caller may set, and the errors in their values.
func (k *Kind) taken(sent map[string]json.RawMessage) (v Values, errs []error) {
	v = make(Values)
	for _, f := range k.Fields {
		raw, ok := k.sent(f.Name, sent)
		if !ok || f.ReadOnly {
			continue
		}
		if f.Required && isBlank(raw) {
			errs = append(errs, problem.Missing(f.Name))
		} else if err := k.checkField(f, raw); err != nil {
			errs = append(errs, err)
		}
		if f.Type == "integer" {
			raw = plainInteger(raw)
		}
		v[f.Name] = raw
	}
	return v, errs
}

// plainInteger returns an integer without a fraction or an exponent. In JSON Schema, 5.0 and 5e0 are
// integers, but package json does not read them into an int. Other values are returned unchanged.
func plainInteger(raw json.RawMessage) json.RawMessage {
	if !bytes.ContainsAny(raw, ".eE") {
		return raw
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	isExact := n == math.Trunc(n) && math.Abs(n) < 1<<53
	if err != nil || !isExact {
		return raw
	}
	return strconv.AppendInt(nil, int64(n), 10)
}

// sent returns the member of all with this name, or with an alias of this name.
func (k *Kind) sent(name string, all map[string]json.RawMessage) (json.RawMessage, bool) {
	if raw, ok := all[name]; ok {
		return raw, true
	}
	for alias, of := range k.Alias {
		if raw, ok := all[alias]; ok && of == name {
			return raw, true
		}
	}
	return nil, false
}

// isBlank reports whether a value is null or a string with nothing but space.
func isBlank(raw json.RawMessage) bool {
	var text string
	return string(raw) == "null" || json.Unmarshal(raw, &text) == nil && strings.TrimSpace(text) == ""
}

// checkField validates the value of a field.
func (k *Kind) checkField(f Field, raw json.RawMessage) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return problem.BadParam(f.Name, "%s is not JSON", f.Name)
	}
	if !isBounded(value) {
		return problem.BadParam(f.Name, "%s must not contain a number that long or large", f.Name)
	}

	schemas, err := k.schemas()
	if err != nil {
		return fmt.Errorf("compiling kind %s: %w", k.Type, err)
	}

	var bad *jsonschema.ValidationError
	if errors.As(schemas[f.Name].Validate(value), &bad) {
		return explain(f, leaf(bad))
	}

	if text, ok := value.(string); ok && strings.ContainsFunc(text, isControl) {
		return problem.BadParam(f.Name, "%s must not contain control characters", f.Name)
	}

	return nil
}

// isBounded reports whether all numbers in a value roughly fit a double (RFC 8259, section 6). The
// schema library compares numbers as fractions. For 1e999999, with its million digits, each
// comparison takes a tenth of a second.
func isBounded(value any) bool {
	switch v := value.(type) {
	case json.Number:
		_, exponent, ok := strings.Cut(strings.ToLower(string(v)), "e")
		n, err := strconv.Atoi(exponent)
		return len(v) <= 400 && (!ok || err == nil && -400 <= n && n <= 400)
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !isBounded(item) })
	case map[string]any:
		for _, member := range v {
			if !isBounded(member) {
				return false
			}
		}
	}

	return true
}

// isControl reports whether r is a control character other than a line break or a tab.
func isControl(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }

// leaf follows the chain of first causes from e, and returns the last error in the chain.
func leaf(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	return e
}

// rules describes the patterns of the built-in kinds in words.
var rules = map[string]string{
	`^\+[0-9]{0,15}$`:          "be the beginning of a phone number with its country code, such as +49",
	`^[a-z0-9]+(-[a-z0-9]+)*$`: "have only lower-case letters, digits and single hyphens between them",
	`^[^\s"\\]*$`:              "not contain spaces, quotation marks or backslashes",
	`^\S+$`:                    "not contain spaces",
}

var english = message.NewPrinter(language.English)

// explain converts a validation error to a problem with a message in plain words.
func explain(f Field, e *jsonschema.ValidationError) error {
	at := f.Name
	for _, step := range e.InstanceLocation {
		at += "." + step
	}

	switch k := e.ErrorKind.(type) {
	case *schemakind.Type:
		return problem.BadParam(f.Name, "%s must be %s", at, oneOf(k.Want))
	case *schemakind.Enum:
		return problem.BadParam(f.Name, "%s must be one of %s", at, listed(k.Want))
	case *schemakind.MaxLength:
		return problem.BadParam(f.Name, "%s is too long (maximum is %d characters)", at, k.Want)
	case *schemakind.Minimum:
		return problem.BadParam(f.Name, "%s must be at least %s", at, k.Want.RatString())
	case *schemakind.Maximum:
		return problem.BadParam(f.Name, "%s must be at most %s", at, k.Want.RatString())
	case *schemakind.MaxItems:
		return problem.BadParam(f.Name, "%s has too many items (maximum is %d)", at, k.Want)
	case *schemakind.UniqueItems:
		return problem.BadParam(f.Name, "%s must not contain an item twice", at)
	case *schemakind.Pattern:
		return problem.BadParam(f.Name, "%s must %s", at, cmp.Or(rules[k.Want], "match "+k.Want))
	case *schemakind.Format:
		if k.Want == "uri" {
			return &problem.Error{
				Kind:    problem.Invalid,
				Code:    "not_an_http_url",
				Param:   f.Name,
				Message: at + " must be an http or https URL",
			}
		}
		return problem.BadParam(f.Name, "%s must be a %s", at, k.Want)
	}

	return problem.BadParam(f.Name, "%s: %s", at, e.ErrorKind.LocalizedString(english))
}

// listed formats values as a list for a message.
func listed(values []any) string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return strings.Join(all, ", ")
}

// oneOf formats JSON type names for a message.
func oneOf(types []string) string {
	words := map[string]string{
		"string":  "a string",
		"integer": "an integer",
		"boolean": "true or false",
		"object":  "an object",
		"array":   "an array",
	}
	var named []string
	for _, t := range types {
		if w := words[t]; w != "" {
			named = append(named, w)
		} else {
			named = append(named, t)
		}
	}
	return strings.Join(named, " or ")
}

// DisplayName returns the display name of a resource, or "".
func (k *Kind) DisplayName(v Values) string { return v.Text(k.NamedBy(v)) }

// NamedBy returns the member that holds the display name of a resource, or "".
func (k *Kind) NamedBy(v Values) string {
	for _, name := range k.Name {
		if v.Text(name) != "" {
			return name
		}
	}
	return ""
}

// Document returns the JSON of a resource. It begins with the members in before. The resource's own
// members follow in the order of the schema. It omits secrets. A read-only member without a value has
// its default, and a nullable member without a value becomes null. If a member for the display name has
// no value, the display name becomes its value. Other members without a value are omitted.
func (k *Kind) Document(before []Member, v Values) json.RawMessage {
	all := append([]Member(nil), before...)
	for _, f := range k.Fields {
		value, ok := v[f.Name]
		switch {
		case f.WriteOnly:
		case ok:
			all = append(all, Member{f.Name, value})
		case f.ReadOnly && f.Default != nil:
			all = append(all, Member{f.Name, f.Default})
		case f.Nullable:
			all = append(all, Member{f.Name, json.RawMessage("null")})
		case slices.Contains(k.Name, f.Name) && k.NamedBy(v) != "":
			all = append(all, Text(f.Name, k.DisplayName(v)))
		}
	}
	return Object(all)
}

// A Member is a named JSON value.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Text returns a member whose value is a string.
func Text(name, value string) Member {
	raw, _ := json.Marshal(value) // a string can always be encoded
	return Member{Name: name, Value: raw}
}

// Object encodes members as a JSON object in the given order.
func Object(all []Member) json.RawMessage {
	b := []byte{'{'}
	for i, m := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, m.Name), ':') // names need no JSON escaping
		b = append(b, m.Value...)
	}
	return append(b, '}')
}
