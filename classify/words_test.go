package classify

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplitName(t *testing.T) {
	for method, want := range map[string]string{
		"messages.getStickerSet":        "messages: get sticker set",
		"messages.getDhConfig":          "messages: get dh config",
		"messages.getEmojiURL":          "messages: get emoji url",
		"messages.requestUrlAuth":       "messages: request url auth",
		"messages.requestURLAuth":       "messages: request url auth",
		"messages.getForumTopicsByID":   "messages: get forum topics by id",
		"messages.composeMessageWithAI": "messages: compose message with ai",
		"messages.setHistoryTTL":        "messages: set history ttl",
		"contacts.getContactIDs":        "contacts: get contact ids",
		"contacts.getIDsOfAll":          "contacts: get ids of all",
		"stories.getPeerMaxIDs":         "stories: get peer max ids",
		"bots.answerWebhookJSONQuery":   "bots: answer webhook json query",
		"phone.exportP2PLink":           "phone: export p2p link",
		"stats.getURLsByUser":           "stats: get urls by user",
		"messages.search":               "messages: search",
		"messages.sendMultiMedia":       "messages: send multi media",
		"account.set2FA":                "account: set2fa",
		"ping":                          ": ping",
		"ping_delay_disconnect":         ": ping delay disconnect",
		"invokeWithReCaptcha":           ": invoke with re captcha",
		"Messages.GetHistory":           "messages: get history",
		"messages.":                     "messages:",
		"":                              ":",
		"a.b.C__d":                      "a: b c d",
		"messages.sendÜbung":            "messages: sendübung",
	} {
		namespace, words := splitName(method)
		got := strings.TrimSpace(namespace + ": " + strings.Join(words, " "))
		require.Equal(t, want, got, method)
	}
}

func FuzzName(f *testing.F) {
	// A few only: with all of them a short run ends before it begins.
	for _, name := range []string{"messages.getStickerSet", "bots.answerWebhookJSONQuery", "stories.getPeerMaxIDs", "upload.saveFilePart"} {
		f.Add(name)
	}
	f.Add("")
	f.Add("..__A1sBs")
	f.Add("ping_delay_disconnect")
	f.Add("IDs.IDsS")
	c, err := New(Options{})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, name string) {
		category := c.Name(name)
		require.True(t, ofCall(category), "%q is %v", name, category)
		require.Equal(t, category, c.Name(name))
		_, words := splitName(name)
		for _, w := range words {
			require.NotEmpty(t, w)
			require.NotContains(t, w, "_")
			require.NotContains(t, w, ".")
		}
	})
}
