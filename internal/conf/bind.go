package conf

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Finding is a setting that has no effect.
type Finding struct {
	Key, Origin string
	// Hint is the nearest known key of an unknown one ("" when none is near), or the reason why a known one does nothing.
	Hint string
}

// Report lists the settings that Bind could not use, sorted by key.
type Report struct {
	Unknown []Finding
	Unused  []Finding
}

// Messages are the findings as sentences for a log.
func (r Report) Messages() []string {
	var lines []string
	for _, f := range r.Unknown {
		line := fmt.Sprintf("%s: unknown key %q", f.Origin, f.Key)
		if f.Hint != "" {
			line += fmt.Sprintf("; did you mean %q?", f.Hint)
		}
		lines = append(lines, line)
	}
	for _, f := range r.Unused {
		lines = append(lines, fmt.Sprintf("%s: %s has no effect: %s", f.Origin, f.Key, f.Hint))
	}
	return lines
}

// Bind sets the fields of the structs that into points to. unused are keys known to have no effect, with the reason.
// A key that several fields carry sets them all. Every value that cannot be taken is in the error, which then names key,
// value and what would be right; the fields of all other keys are set all the same.
func Bind(v Values, unused map[string]string, into ...any) (Report, error) {
	fields := map[string][]Field{}
	for _, f := range Fields(into...) {
		fields[f.Key] = append(fields[f.Key], f)
	}
	var report Report
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(v)) {
		value := v[key]
		bound, ok := fields[key]
		if !ok {
			if reason, known := unused[key]; known {
				report.Unused = append(report.Unused, Finding{key, value.Origin, reason})
			} else {
				report.Unknown = append(report.Unknown, Finding{key, value.Origin, nearest(key, fields, unused)})
			}
			continue
		}
		for _, f := range bound {
			if err := f.Set(value.Text); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", value.Origin, err))
				break
			}
		}
	}
	return report, errors.Join(errs...)
}

// Print writes `key=value` lines of all fields, or of the important ones, sorted by key, each key once.
func Print(w io.Writer, important bool, from ...any) error {
	for _, f := range sortedFields(from) {
		if important && !f.Important {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s=%s\n", f.Key, f.Text()); err != nil {
			return err
		}
	}
	return nil
}

func sortedFields(from []any) []Field {
	fields := Fields(from...)
	slices.SortStableFunc(fields, func(a, b Field) int { return strings.Compare(a.Key, b.Key) })
	return slices.CompactFunc(fields, func(a, b Field) bool { return a.Key == b.Key })
}

// nearest returns the known key that key was probably meant to be, or "".
func nearest(key string, fields map[string][]Field, unused map[string]string) string {
	best, bestDistance := "", max(2, len(key)/4)+1
	consider := func(candidate string) {
		if d := distance(strings.ToLower(key), strings.ToLower(candidate)); d < bestDistance || d == bestDistance && best != "" && candidate < best {
			best, bestDistance = candidate, d
		}
	}
	for candidate := range fields {
		consider(candidate)
	}
	for candidate := range unused {
		consider(candidate)
	}
	return best
}

// distance is the Levenshtein distance in bytes; keys longer than 128 bytes are nobody's typing mistake.
func distance(a, b string) int {
	if len(a) > 128 || len(b) > 128 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
