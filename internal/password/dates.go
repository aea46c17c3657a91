package password

import (
	"regexp"
	"strconv"
	"sync"

	"github.com/ccojocar/zxcvbn-go/entropy"
	"github.com/ccojocar/zxcvbn-go/match"
)

// dates finds the dates in a password. It recognizes dates with separators, and dates of six or
// eight digits. The year comes first or last. It has two digits, or is from 1900 to 2099.
func dates(password string) (found []match.Match) {
	for _, re := range written() {
		for _, indexes := range re.FindAllStringSubmatchIndex(password, -1) {
			part := func(name string) string { return string(re.ExpandString(nil, "${"+name+"}", password, indexes)) }
			number := func(name string) int64 {
				n, _ := strconv.ParseInt(part(name), 10, 16) // at most four digits
				return n
			}

			// The parts a and b must be a month and a day, in either order.
			low, high := min(number("a"), number("b")), max(number("a"), number("b"))
			if low < 1 || low > 12 || high > 31 {
				continue
			}

			begin, end := indexes[0], indexes[1]
			found = append(found, match.Match{
				Pattern:        "date",
				DictionaryName: "date_match",
				I:              begin,
				J:              end - 1,
				Token:          password[begin:end],
				Entropy:        entropy.DateEntropy(match.DateMatch{Year: number("year"), Separator: part("sign")}),
			})
		}
	}
	return found
}

// written returns regular expressions for the ways to write a date.
var written = sync.OnceValue(func() (ways []*regexp.Regexp) {
	const day, sign, year = `(?P<a>\d{1,2})`, `(?P<sign>[-\s/\\_.])`, `(?P<year>(?:19|20)?\d\d)`
	const month, again = `(?P<b>\d{1,2})`, `[-\s/\\_.]`
	for _, way := range []string{
		day + sign + month + again + year,
		year + sign + day + again + month,
		`(?P<a>\d\d)(?P<b>\d\d)(?P<year>(?:19|20)\d\d)`,
		`(?P<year>(?:19|20)\d\d)(?P<a>\d\d)(?P<b>\d\d)`,
		`(?P<a>\d\d)(?P<b>\d\d)(?P<year>\d\d)`,
		`(?P<year>\d\d)(?P<a>\d\d)(?P<b>\d\d)`,
	} {
		ways = append(ways, regexp.MustCompile(way))
	}
	return ways
})
