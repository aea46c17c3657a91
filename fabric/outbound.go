package fabric

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/selvage/selvage/internal/problem"
)

// OutboundCalls determines whether members of a project may make calls through its SIP gateways.
type OutboundCalls string

// The values of OutboundCalls, the default first.
const (
	OutboundOff OutboundCalls = "off"
	OutboundOn  OutboundCalls = "on"
)

// Prefixes holds beginnings of phone numbers in E.164 format, such as +49, separated by spaces. In
// JSON they are a list.
type Prefixes string

// MarshalJSON returns the prefixes as a list. Without prefixes, the list is empty.
func (p Prefixes) MarshalJSON() ([]byte, error) { return json.Marshal(append([]string{}, p.List()...)) }

// UnmarshalJSON accepts a list, or a text with spaces, as in a declaration file.
func (p *Prefixes) UnmarshalJSON(raw []byte) error {
	var all []string
	if json.Unmarshal(raw, &all) == nil {
		*p = JoinPrefixes(all)
		return nil
	}
	return json.Unmarshal(raw, (*string)(p))
}

// List returns the prefixes as a list.
func (p Prefixes) List() []string { return strings.Fields(string(p)) }

// JoinPrefixes returns the prefixes as one value.
func JoinPrefixes(all []string) Prefixes { return Prefixes(strings.Join(all, " ")) }

// maxPrefixes is the maximum number of prefixes of a project.
const maxPrefixes = 100

// checkOutbound reports everything that is wrong with the rules for outbound calls.
func (c ProjectChange) checkOutbound() error {
	var errs []error
	if o := c.OutboundCalls; o != nil && *o != OutboundOff && *o != OutboundOn {
		errs = append(errs, problem.BadParam("outbound_calls", "outbound_calls must be one of off, on"))
	}
	if c.OutboundPrefixes == nil {
		return errors.Join(errs...)
	}

	prefixes := c.OutboundPrefixes.List()
	if len(prefixes) > maxPrefixes {
		errs = append(errs, problem.BadParam("outbound_prefixes",
			"outbound_prefixes must have at most %d prefixes", maxPrefixes))
	}
	if slices.ContainsFunc(prefixes, func(p string) bool { return !isPrefix(p) }) {
		errs = append(errs, problem.BadParam("outbound_prefixes",
			"outbound_prefixes must contain the beginnings of phone numbers, such as +49"))
	}
	return errors.Join(errs...)
}

// isPrefix reports whether p is the beginning of a phone number with at least one digit.
func isPrefix(p string) bool {
	digits, ok := strings.CutPrefix(p, "+")
	return ok && digits != "" && len(digits) <= maxDigits && digits[0] != '0' &&
		strings.Trim(digits, "0123456789") == ""
}

// The reasons why a call to a phone number is refused.
const (
	ReasonOff       = "outbound_calls_off"
	ReasonPrefix    = "prefix_not_allowed"
	ReasonExpensive = "expensive_range"
	ReasonNoGateway = "no_gateway"
)

// MayCall returns "" if the project's rules permit calls to a phone number in E.164 format.
// Otherwise, it returns the reason. A prefix permits expensive numbers only if it names their
// range, so +49 does not permit +49900.
func (p Project) MayCall(number string) string {
	if p.OutboundCalls != OutboundOn {
		return ReasonOff
	}
	allowed := longestPrefix(p.OutboundPrefixes.List(), number)
	if allowed == "" {
		return ReasonPrefix
	}
	if len(longestPrefix(expensive, number)) > len(allowed) {
		return ReasonExpensive
	}
	return ""
}

// MayCallUser returns "" if the project's rules permit calls to the user in the URI of a gateway.
// Otherwise, it returns the reason. A user with as many digits as a phone number counts as a phone
// number. Carriers often accept numbers without a plus sign, and with parameters after a semicolon.
// The country of a national number, or of a number after a code such as *67, is unknown, so it is not
// permitted. A user that is a name, or that has fewer digits than a phone number, is always permitted.
func (p Project) MayCallUser(user string) string {
	if plain, err := url.PathUnescape(user); err == nil {
		user = plain
	}
	user, _, _ = strings.Cut(user, ";")
	digits := 0
	for _, r := range user {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case unicode.IsLetter(r) || r == '_':
			return "" // the user is a name
		}
	}

	if digits < minDigits {
		return "" // for example an extension of a PBX
	}
	number, ok := ParseNumber(user)
	if !ok {
		number, ok = ParseNumber("+" + strings.TrimLeft(user, "+ -.()"))
	}
	if !ok {
		return ReasonPrefix
	}
	return p.MayCall(number)
}

// longestPrefix returns the longest of the given prefixes with which a number begins, or "".
func longestPrefix(prefixes []string, number string) (longest string) {
	for _, p := range prefixes {
		if strings.HasPrefix(number, p) && len(p) > len(longest) {
			longest = p
		}
	}
	return longest
}

// expensive lists ranges whose calls cost much more than other calls to their country. They are the
// usual destinations of fraud. The list contains satellites, international and national premium
// rates, shared costs, personal numbers, pagers and directory inquiries. It also contains islands
// in the North American plan, whose numbers look domestic. The sources are ITU-T E.164 and the
// national numbering plans.
//
// Numbers of directory inquiries are listed only if no area code begins with the same digits. For
// example, +44118 is Reading, and +31118 is Middelburg.
var expensive = []string{
	"+870", "+881", "+882", "+883", // satellites and international networks (ITU-T E.164)
	"+808", "+878", "+888", "+979", // shared cost, personal numbers, disaster relief, premium rate
	"+247", "+290", "+500", "+672", "+674", "+675", "+676", "+677", "+678", "+679", "+682", "+683", "+685", "+686",
	"+687", "+688", "+689", "+690", "+691", "+692", // islands

	"+1242", "+1246", "+1264", "+1268", "+1284", "+1345", "+1441", "+1473", "+1649", "+1658", "+1664", "+1721",
	"+1758", "+1767", "+1784", "+1809", "+1829", "+1849", "+1868", "+1869", "+1876", // the Caribbean
	"+1900", "+1976", // premium rate

	// NANPA assigns 500 and similar codes to personal communications. It assigns 600 and 622 to
	// Canadian special services such as satellites, and 700 to services of each carrier. None of
	// them has a common price.
	"+1500", "+1521", "+1522", "+1523", "+1524", "+1525", "+1526", "+1527", "+1528", "+1529", "+1533", "+1544",
	"+1566", "+1577", "+1588", "+1600", "+1622", "+1700",

	"+43118", "+43810", "+43820", "+43821", "+43828", "+43900", "+43901", "+43930", "+43931", "+43939", // Austria
	"+41840", "+41842", "+41844", "+41848", "+41878", "+41900", "+41901", "+41906", // Switzerland
	"+4484", "+4487", "+449", "+4470", "+4476", // United Kingdom
	"+49118", "+49137", "+49180", "+49185", "+49188", "+49190", "+49900", "+49700", // Germany
	"+3381", "+3382", "+3389", // France
	"+3270", "+3277", "+32902", "+32903", "+32904", "+32905", "+32906", "+32907", "+32909", // Belgium
	"+31900", "+31906", "+31909", // Netherlands
	"+34118", "+34803", "+34806", "+34807", "+34901", "+34902", "+34905", "+34907", // Spain
	"+35160", "+351707", "+351708", "+351760", "+351761", "+351762", "+351808", // Portugal
	"+39144", "+39166", "+39178", "+39199", "+39840", "+39841", "+39847", "+39848", // Italy
	"+39892", "+39893", "+39894", "+39895", "+39899",
	"+48300", "+48801", "+48804", "+4870", "+420900", "+420906", "+420908", "+420909", // Poland, Czechia
	"+3690", "+38560", "+38690", "+421900", // Hungary, Croatia, Slovenia, Slovakia
	"+4590", "+46900", "+46939", "+46944", "+4677", "+4699", "+47815", "+47820", "+47829", // Denmark, Sweden, Norway
	"+358600", "+358700", // Finland
	"+61190", "+6119", "+64900", "+81570", "+81990", "+2786", // Australia, New Zealand, Japan, South Africa
	"+7809", "+7803", // Russia
}
