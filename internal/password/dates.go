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
		names := re.SubexpNames()
		for _, at := range re.FindAllStringSubmatchIndex(password, -1) {
			d := match.DateMatch{}
			var a, b int64
			for k, name := range names {
				text := ""
				if at[2*k] >= 0 {
					text = password[at[2*k]:at[2*k+1]]
				}

				n, _ := strconv.ParseInt(text, 10, 16) // at most four digits
				switch name {
				case "year":
					d.Year = n
				case "a":
					a = n
				case "b":
					b = n
				case "sign":
					d.Separator = text
				}
			}

			// The other two parts must be a month and a day, in either order.
			if min(a, b) < 1 || min(a, b) > 12 || max(a, b) > 31 {
				continue
			}

			m := match.Match{
				Pattern:        "date",
				DictionaryName: "date_match",
				I:              at[0],
				J:              at[1] - 1,
				Token:          password[at[0]:at[1]],
			}
			m.Entropy = entropy.DateEntropy(d)
			found = append(found, m)
		}
	}
	return found
}

// written returns regular expressions for the ways to write a date.
var written = sync.OnceValue(func() (ways []*regexp.Regexp) {
	const day, sign, year = `(?P<a>\d{1,2})`, `(?P<sign>[-\s/\\_.])`, `(?P<year>(?:19|20)?\d\d)`
	const month, again = `(?P<b>\d{1,2})`, `[-\s/\\_.]`
	for _, way := range []string{
		day + sign + month + again + year, year + sign + day + again + month,
		`(?P<a>\d\d)(?P<b>\d\d)(?P<year>(?:19|20)\d\d)`, `(?P<year>(?:19|20)\d\d)(?P<a>\d\d)(?P<b>\d\d)`,
		`(?P<a>\d\d)(?P<b>\d\d)(?P<year>\d\d)`, `(?P<year>\d\d)(?P<a>\d\d)(?P<b>\d\d)`,
	} {
		ways = append(ways, regexp.MustCompile(way))
	}
	return ways
})
