package localdc

import (
	"github.com/gotd/td/bin"
)

// on makes a method of a handler of one request type.
func on[R bin.Object](handle func(*call, R) (bin.Encoder, error)) (uint32, method) {
	var r R // a nil pointer, which knows its type id all the same
	id := any(r).(interface{ TypeID() uint32 }).TypeID()
	return id, method{handle: func(c *call, o bin.Object) (bin.Encoder, error) { return handle(c, o.(R)) }}
}

// table lists everything that is answered.
func (c *Cloud) table() map[uint32]method {
	t := map[uint32]method{}
	home := func(id uint32, m method) { t[id] = m }
	anywhere := func(id uint32, m method) { m.anywhere = true; t[id] = m }
	open := func(id uint32, m method) { m.open = true; t[id] = m }

	open(on((*call).getConfig))
	open(on((*call).getNearestDC))
	open(on((*call).getCDNConfig))
	open(on((*call).importBotAuthorization))
	open(on((*call).importAuthorization))
	home(on((*call).exportAuthorization))
	anywhere(on((*call).logOut))

	anywhere(on((*call).getUsers))
	home(on((*call).getFullUser))
	home(on((*call).resolveUsername))
	home(on((*call).setBotCommands))
	home(on((*call).getBotCommands))
	home(on((*call).getChannels))
	home(on((*call).editBanned))

	home(on((*call).getState))
	home(on((*call).getDifference))
	home(on((*call).getChannelDifference))

	home(on((*call).sendMessage))
	home(on((*call).editMessage))
	home(on((*call).forwardMessages))
	home(on((*call).deleteMessages))
	home(on((*call).deleteChannelMessages))
	home(on((*call).getHistory))
	home(on((*call).getMessages))
	home(on((*call).getChannelMessages))
	home(on((*call).setTyping))
	home(on((*call).updatePinnedMessage))
	home(on((*call).setBotCallbackAnswer))

	home(on((*call).uploadMedia))
	home(on((*call).sendMedia))
	home(on((*call).sendMultiMedia))
	anywhere(on((*call).saveFilePart))
	anywhere(on((*call).saveBigFilePart))
	anywhere(on((*call).getFile))
	anywhere(on((*call).getFileHashes))
	return t
}
