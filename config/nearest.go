package config

import (
	"strings"
	"unicode"
)

// nearest returns the known word that was most likely meant by word: the one
// with the fewest letters added, left out, exchanged or swapped, up to a third
// of its length, or else one that contains word or is contained in it. It
// returns "" if none is near. Case, - and _ do not count.
func nearest(word string, known []string) string {
	if len(word) > maxShown {
		return "" // no slip of the hand, and the work grows with the length
	}
	word = fold(word)
	best, found := len(word), ""
	for _, k := range known {
		folded := fold(k)
		if d := distance(word, folded); d < best && 3*d <= max(len(word), len(folded)) {
			best, found = d, k
		}
	}
	if found != "" || len(word) < 3 {
		return found
	}
	for _, k := range known {
		if folded := fold(k); strings.Contains(folded, word) || strings.Contains(word, folded) {
			return k
		}
	}
	return ""
}

func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', ' ':
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// distance counts the single steps from a to b: a byte added, left out or
// exchanged, or two neighbours swapped.
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			step := 1
			if a[i-1] == b[j-1] {
				step = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+step)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
