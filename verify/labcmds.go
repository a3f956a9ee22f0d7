package verify

func labCommands() map[string]command { return map[string]command{} }
