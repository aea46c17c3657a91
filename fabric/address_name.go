package fabric

import (
	"cmp"
	"crypto/rand"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/selvage/selvage/fabric/kinds"
	"github.com/selvage/selvage/internal/problem"
)

// resourceAddress returns the first address of a new resource. If the resource has no name, the
// address is named after its kind and the end of its id.
func resourceAddress(k *kinds.Kind, r Resource) Address {
	return Address{
		ID:          newID(),
		ProjectID:   r.ProjectID,
		ResourceID:  r.ID,
		Type:        k.Address,
		Context:     cmp.Or(k.Context, Public),
		Name:        cmp.Or(resourceName(k, r), slug(k.Type+"-"+r.ID[len(r.ID)-8:])),
		DisplayName: r.DisplayName,
		Channels:    k.Channels,
		Created:     r.Created,
	}
}

// resourceName derives an address name from the members of a resource. It returns "" if no name can
// be derived.
func resourceName(k *kinds.Kind, r Resource) string {
	return cmp.Or(slug(r.Fields.Text(k.AddressName)), slug(r.DisplayName))
}

// subscriberAddress returns the first address of a new subscriber. If no name can be derived from the
// subscriber, the address gets a random name.
func subscriberAddress(s Subscriber) Address {
	name := cmp.Or(subscriberName(s), "subscriber-"+strings.ToLower(rand.Text()[:8]))
	return Address{
		ID:          newID(),
		ProjectID:   s.ProjectID,
		ResourceID:  s.ID,
		Type:        TypeSubscriber,
		Context:     Private,
		Name:        name,
		DisplayName: cmp.Or(s.FullName(), name),
		Channels:    allChannels,
		Created:     s.Created,
	}
}

// subscriberName derives an address name from the email address or the reference of a subscriber. It
// returns "" if no name can be derived.
func subscriberName(s Subscriber) string {
	local, _, _ := strings.Cut(s.Email, "@")
	return cmp.Or(slug(local), slug(s.Reference))
}

// insertNamed calls insert with the address. If the address name is taken, it tries again with a
// new random suffix.
func insertNamed(a Address, insert func(a Address) error) error {
	for {
		err := insert(a)
		var p *problem.Error
		if !errors.As(err, &p) || p.Kind != problem.Conflict || p.Param != "address" {
			return err
		}
		a = a.withSuffix()
	}
}

// withSuffix returns the address with a random suffix, which replaces any previous one.
func (a Address) withSuffix() Address {
	base, _, _ := strings.Cut(a.Name, "--")
	name := base + "--" + strings.ToLower(rand.Text()[:6])
	if a.DisplayName == a.Name {
		a.DisplayName = name
	}
	a.Name = name
	return a
}

// slug converts text to the name of an address. The name has at most 50 characters of [a-z0-9._-],
// and begins and ends with a letter or digit. It is "" if nothing is left of the text. Other letters are
// excluded so that no two names look the same and every name can be dialed. slug reads only the
// first 4*maxText bytes.
func slug(text string) string {
	text = text[:min(len(text), utf8.UTFMax*maxText)]
	var b strings.Builder
	for _, r := range norm.NFKD.String(cases.Fold().String(norm.NFKC.String(text))) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		case unicode.IsSpace(r), r == '+', r == '@', isSlash(r):
			b.WriteByte('-')
		default:
			b.WriteString(latin[r])
		}
	}

	name := b.String()
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}

	return strings.Trim(name[:min(len(name), 50)], "._-")
}

// latin contains ASCII spellings of the Latin letters that do not decompose into an ASCII letter and a
// mark.
var latin = map[rune]string{
	'æ': "ae",
	'œ': "oe",
	'ø': "o",
	'ł': "l",
	'đ': "d",
	'ð': "d",
	'þ': "th",
	'ħ': "h",
	'ı': "i",
	'ŋ': "ng",
}
