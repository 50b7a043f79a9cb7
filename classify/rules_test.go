package classify

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the golden file says of today's functions, said of names that Telegram
// has not thought of yet.
func TestRulesForNamesToCome(t *testing.T) {
	rules := newRules()
	for method, want := range map[string]Category{
		"messages.sendVideoNote":       Media,
		"channels.editVideoPhoto":      Media,
		"communities.sendPhoto":        Media,
		"messages.uploadAnything":      Media,
		"messages.getSavedVideos":      Query,
		"somewhere.searchPinnedThings": Query,
		"channels.checkBannedRights":   Query,
		"account.getTogglePin":         Query,
		"account.sendThing":            Account,
		"auth.frobnicate":              Account,
		"contacts.deleteEverything":    Account,
		"bots.setPin":                  Account,
		"messages.pinEverything":       Admin,
		"messages.banUser":             Admin,
		"channels.frobnicate":          Admin,
		"channels.sendMessage":         Message,
		"messages.frobnicate":          Message,
		"somewhere.frobnicate":         Message,
		"upload.saveHugeFilePart":      Media,
		"updates.getEverything":        Bulk,
		"langpack.getDifference":       Query,
		"ping":                         Bulk,
		"ping_delay_disconnect":        Bulk,
		"messages.mapping":             Message,
		"messages.getter":              Message,
		"messages.searchPing":          Query,
		"frobnicate":                   Query,
		"":                             Query,
		"messages.":                    Message,
	} {
		require.Equal(t, want.String(), rules.category(method).String(), method)
	}
}

func TestRuleTable(t *testing.T) {
	table := ruleTable()
	for _, r := range table {
		require.True(t, ofCall(r.category), "%+v", r)
		for _, column := range []string{r.namespace, r.verb, r.thing} {
			require.Equal(t, strings.ToLower(column), column)
		}
	}
	last := table[len(table)-1]
	require.Equal(t, rule{category: Message}, last, "the last rule has to fit everything")
}

// A word that no function has, and that is not there for functions to come,
// is a slip of the pen in a namespace.
func TestEveryNamespaceOfTheRulesIsThere(t *testing.T) {
	have := []string{"."}
	for _, name := range Names() {
		namespace, _ := splitName(name)
		have = append(have, namespace)
	}
	for _, r := range newRules() {
		for _, ns := range r.namespaces {
			require.True(t, slices.Contains(have, ns), ns)
		}
	}
}
