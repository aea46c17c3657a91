package levels

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Flags is a set of what an operator looks for.
type Flags uint8

// The flags. Their values are kept in databases.
const (
	Silent  Flags = 1 << iota // no sample is larger than what an idle line has
	OneWay                    // one leg talks, another never does
	Clipped                   // samples were cut off at the largest value
	DeadAir                   // nobody talks for ten seconds or more
)

// names are those of the flags, in the order of their values.
var names = []string{"silent", "one-way", "clipped", "dead-air"}

// FlagNames returns the names of all flags.
func FlagNames() []string { return slices.Clone(names) }

// FlagOf returns the flag of a name.
func FlagOf(name string) (f Flags, ok bool) {
	i := slices.Index(names, name)
	return 1 << max(0, i), i >= 0
}

// Names returns the names of the flags in the set; of none an empty list.
func (f Flags) Names() []string {
	set := []string{}
	for i, name := range names {
		if f&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return set
}

// MarshalJSON writes the names.
func (f Flags) MarshalJSON() ([]byte, error) { return json.Marshal(f.Names()) }

// UnmarshalJSON reads names.
func (f *Flags) UnmarshalJSON(b []byte) error {
	var set []string
	if err := json.Unmarshal(b, &set); err != nil {
		return fmt.Errorf("reading flags: %w", err)
	}
	*f = 0
	for _, name := range set {
		flag, ok := FlagOf(name)
		if !ok {
			return fmt.Errorf("reading flags: %q is none", name)
		}
		*f |= flag
	}
	return nil
}

// Bounds of the flags.
const (
	idle        = 8     // the largest sample of a line without sound: A-law knows no smaller one
	clippedFrom = 0.001 // share of samples
	deadAirFrom = 10.0  // seconds
	oneWayTalk  = 2.0   // seconds that one leg talks at least
	oneWayMute  = 0.2   // seconds that another leg talks at most
)

// flags judges what was measured.
func (f Facts) flags(largest int) (set Flags) {
	if largest <= idle {
		set |= Silent
	}
	if slices.Max(f.Talk) >= oneWayTalk && slices.Min(f.Talk) <= oneWayMute {
		set |= OneWay
	}
	if f.Clipped >= clippedFrom {
		set |= Clipped
	}
	if f.LongestSilence >= deadAirFrom {
		set |= DeadAir
	}
	return set
}
